/* A database filled by what a trace would tell, without a file: times in ms, one call a fact or event. */
#ifndef TESTS_UNIT_KIT_DB_H
#define TESTS_UNIT_KIT_DB_H

#include "analyzer/load_recording.h"

#include <sqlite3.h>

#define KIT_T0_NS 1000000000000 /* t = 0 ms of every test */

struct kit {
    sqlite3 *db;
    struct store *store;
    struct recording r;
};

void kit_open(struct kit *k);
/* The next block: what ended in the one before is settled. */
void kit_block(struct kit *k);
/* A generation that arrived at arrive_ms, was forwarded at once, streams, status 200. */
void kit_request(struct kit *k, uint64_t id, double arrive_ms);
void kit_ms(struct kit *k, uint64_t id, enum fact f, double ms);
void kit_int(struct kit *k, uint64_t id, enum fact f, int64_t v);
void kit_text(struct kit *k, uint64_t id, enum fact f, const char *text);
/* An event with everything told; t in ms, reads counted by the caller. */
void kit_event(struct kit *k, uint64_t id, double t_ms, const struct tok_event *e);
/* An event that carries only text: its own read, choice 0, no counts. */
void kit_content(struct kit *k, uint64_t id, double t_ms, uint32_t text_bytes);
/* finish_reason stop, end sign, t_end, end_by complete. */
void kit_end(struct kit *k, uint64_t id, double end_ms);
/* Everything told: settles, derives, makes the TEMP objects. */
void kit_done(struct kit *k);
void kit_close(struct kit *k);

/* One value of the request's row in the view requests; NAN or NULL (static storage) when absent. */
double kit_number(struct kit *k, uint64_t id, const char *column);
const char *kit_word(struct kit *k, uint64_t id, const char *column);
/* One value of any query. */
double kit_query(struct kit *k, const char *sql);

#endif

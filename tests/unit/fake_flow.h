/* What the tests of flows share: the usual messages, and checks of the facts that were told. */
#ifndef TESTS_FAKE_FLOW_H
#define TESTS_FAKE_FLOW_H

#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
#define SSE  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define LAST "0\r\n\r\n"

static inline void begin(struct drive *v) {
    drive_start(v);
    v->now_ns = 2000;
}

static inline void end(struct drive *v) {
    drive_close(v);
    drive_stop(v);
    assert_false(fake_misused());
    assert_int_equal(fake_begun(SUBJECT_R), fake_ended(SUBJECT_R));
    assert_int_equal(fake_begun(SUBJECT_C), fake_ended(SUBJECT_C));
}

static inline void at(struct drive *v, int64_t t_ns, enum dir dir, const char *text) {
    v->now_ns = t_ns;
    drive_text(v, dir, text);
}

/* A chunk around an event, so that sizes need not be counted by hand. */
static inline void event(struct drive *v, int64_t t_ns, const char *data) {
    char text[2048];
    snprintf(text, sizeof text, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data);
    at(v, t_ns, DIR_DOWN, text);
}

#define DELTA(text)                                                                                          \
    "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"}}]" \
    "}"
#define STOP                                                                                                 \
    "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"        \
    "\"stop\"}]}"

static inline void hold(uint64_t id, enum fact f, int64_t right) {
    int64_t seen = fake_get(id, f, -1);
    if (seen != right)
        fail_msg("request %d: %s is %lld, right is %lld", (int)id, fact_infos[f].name, (long long)seen,
                 (long long)right);
}
static inline void hold_text(uint64_t id, enum fact f, const char *right) {
    const char *seen = fake_str(id, f);
    if (!seen || strcmp(seen, right) != 0)
        fail_msg("request %d: %s is %s, right is %s", (int)id, fact_infos[f].name, seen ? seen : "absent",
                 right);
}
static inline void absent(uint64_t id, enum fact f) {
    int64_t v;
    if (fake_int(id, f, &v) || fake_str(id, f))
        fail_msg("request %d: %s was told", (int)id, fact_infos[f].name);
}

#endif

/* Pieces made of the input: five bytes a piece tell its kind, direction, size, loss and hints, bytes follow.
 * Whatever comes, facts are told only of what was begun and not ended, and memory is given back. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t data_piece(struct drive *v, const uint8_t *h, const uint8_t *p, size_t n) {
    enum dir dir = h[0] & 1 ? DIR_DOWN : DIR_UP;
    size_t len = (size_t)h[1] << 2 | (h[2] & 3);
    if (len > n) len = n;
    struct piece d = {
        .kind = PIECE_DATA, .dir = (uint8_t)dir, .off = v->off[dir], .n_bytes = (uint32_t)len, .flow = 1};
    if (h[2] & 4) d.n_shed = h[3];
    if (h[2] & 8) d.off += h[3]; /* pieces before it are missing */
    d.head_at = h[2] & 16 ? d.off + h[4] % (len + 1) : NO_OFFSET;
    d.end_at = h[2] & 32 ? d.off + h[4] / 2 : NO_OFFSET;
    if (h[2] & 64) d.t2_ns = v->now_ns + 1;
    d.flags = h[2] & 128 ? PIECE_KERNEL_TIME : 0;
    d.t_ns = v->now_ns;
    char *copy = malloc(len + !len);
    memcpy(copy, p, len);
    dissect_piece(v->d, &d, copy);
    free(copy);
    v->off[dir] = d.off + len + d.n_shed;
    return len;
}

static void other_piece(struct drive *v, const uint8_t *h) {
    static const uint16_t kinds[] = {PIECE_WROTE,     PIECE_FIN,       PIECE_RESET,    PIECE_PAUSE,
                                     PIECE_RESUME,    PIECE_DELIVERED, PIECE_ANSWERED, PIECE_LOSS,
                                     PIECE_CONNECTED, PIECE_CLOCK,     PIECE_CLOSE};
    struct piece p = {
        .kind = kinds[h[1] % 11], .dir = h[0] & 1, .flow = 1, .t_ns = v->now_ns, .head_at = NO_OFFSET};
    p.t2_ns = v->now_ns - h[3];
    p.off = h[2] & 1 ? v->off[p.dir] : h[3];
    p.value = p.kind == PIECE_ANSWERED ? 502 : h[4] & 1 ? ETIMEDOUT : h[4];
    dissect_piece(v->d, &p, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct drive v;
    bool closed = false;
    drive_start(&v);
    for (size_t i = 0; i + 5 <= size && !closed; v.now_ns += 1000000) {
        const uint8_t *h = data + i;
        i += 5;
        if (h[0] & 0x80) {
            other_piece(&v, h);
            closed = fake_ended(SUBJECT_C) > 0;
        } else {
            i += data_piece(&v, h, data + i, size - i);
        }
    }
    drive_stop(&v);
    if (fake_misused()) abort();
    if (fake_begun(SUBJECT_R) != fake_ended(SUBJECT_R) || fake_begun(SUBJECT_C) != fake_ended(SUBJECT_C))
        abort();
    fake_reset();
    return 0;
}

/* The ring between the two processes: whole pieces in order, refusal when full, survival of a killed consumer
 * and producer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/ring.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The i-th piece of a test: its length and bytes follow from i alone. */
static uint32_t length_of(uint64_t i) {
    return (uint32_t)(i * 2654435761u >> 7) % 3000;
}

static bool push(struct ring *r, uint64_t i) {
    unsigned char bytes[3000];
    struct piece p = {.kind = PIECE_DATA, .flow = i, .n_bytes = length_of(i)};
    memset(bytes, (int)(i & 0xff), p.n_bytes);
    return ring_push(r, &p, bytes);
}

static bool is_right(const struct piece *p, uint64_t i) {
    const unsigned char *b = piece_bytes(p);
    if (p->kind != PIECE_DATA || p->flow != i || p->n_bytes != length_of(i)) return false;
    for (uint32_t k = 0; k < p->n_bytes; k++) {
        if (b[k] != (i & 0xff)) return false;
    }
    return true;
}

static void pieces_come_out_whole_and_in_order(void **state) {
    struct ring *r = ring_new(64 << 10);
    uint64_t in = 1, out = 1;
    for (int round = 0; round < 2000; round++) {
        for (int k = 0; k < 7 && push(r, in); k++) in++;
        const struct piece *p;
        for (int k = 0; k < 6 && (p = ring_peek(r)); k++, out++) {
            assert_true(is_right(p, out));
            ring_pop(r);
        }
    }
    assert_true(in > 10000);
    assert_true(ring_high_water(r) > 0);
    ring_free(r);
}

static void a_full_ring_refuses_and_keeps_what_it_has(void **state) {
    struct ring *r = ring_new(64 << 10);
    uint64_t n = 1;
    while (push(r, n)) n++;
    assert_true(ring_used(r) <= ring_size(r));
    for (uint64_t i = 1; i < n; i++) {
        const struct piece *p = ring_peek(r);
        assert_non_null(p);
        assert_true(is_right(p, i));
        ring_pop(r);
    }
    assert_null(ring_peek(r));
    assert_true(ring_high_water(r) >= ring_size(r) / 2 && ring_high_water(r) <= ring_size(r));
    assert_true(push(r, n));
    ring_free(r);
}

static void a_sleeper_is_woken_at_a_quarter_and_at_the_close(void **state) {
    struct ring *r = ring_new(64 << 10);
    struct pollfd w = {.fd = ring_wake_fd(r), .events = POLLIN};
    uint64_t wakes, i = 1;
    while (ring_used(r) * 4 < ring_size(r)) {
        assert_int_equal(poll(&w, 1, 0), 0);
        assert_true(push(r, i++));
    }
    assert_int_equal(poll(&w, 1, 0), 1);
    assert_int_equal(read(w.fd, &wakes, sizeof wakes), sizeof wakes);
    assert_false(ring_closed(r));
    ring_close(r);
    assert_true(ring_closed(r));
    assert_int_equal(poll(&w, 1, 0), 1);
    ring_free(r);
}

enum { N_PIECES = 60000 };

/* Reads from piece *next on until told to die; *next lies in the shared memory of the test. */
static void consume(struct ring *r, volatile uint64_t *next, volatile uint64_t *wrong) {
    while (*next <= N_PIECES) {
        const struct piece *p = ring_peek(r);
        if (!p) continue;
        if (p->flow == *next - 1) { /* killed between counting and popping: seen twice, never lost */
            ring_pop(r);
            continue;
        }
        if (!is_right(p, *next)) ++*wrong;
        ++*next;
        ring_pop(r);
    }
}

static void killing_the_consumer_loses_no_piece(void **state) {
    struct ring *r = ring_new(256 << 10), *shared = ring_new(64 << 10);
    volatile uint64_t *next = (volatile uint64_t *)((char *)shared + 1024), *wrong = next + 1;
    *next = 1, *wrong = 0;
    uint64_t in = 1;
    unsigned kills = 0;
    while (*next <= N_PIECES) {
        pid_t child = fork();
        if (child == 0) {
            consume(r, next, wrong);
            _exit(0);
        }
        for (int k = 0; k < 4000 && in <= N_PIECES; k++) in += push(r, in);
        if (in <= N_PIECES) kill(child, SIGKILL), kills++;
        waitpid(child, NULL, 0);
    }
    assert_int_equal(*wrong, 0);
    assert_true(kills > 5);
    ring_free(r);
    ring_free(shared);
}

static void killing_the_producer_leaves_whole_pieces(void **state) {
    for (int round = 0; round < 50; round++) {
        struct ring *r = ring_new(4 << 20);
        pid_t child = fork();
        if (child == 0) {
            for (uint64_t i = 1; push(r, i); i++) {
            }
            pause();
        }
        usleep((useconds_t)(round * 37 % 1500));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        const struct piece *p;
        for (uint64_t i = 1; (p = ring_peek(r)); i++) {
            assert_true(is_right(p, i));
            ring_pop(r);
        }
        ring_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_come_out_whole_and_in_order),
        cmocka_unit_test(a_full_ring_refuses_and_keeps_what_it_has),
        cmocka_unit_test(a_sleeper_is_woken_at_a_quarter_and_at_the_close),
        cmocka_unit_test(killing_the_consumer_loses_no_piece),
        cmocka_unit_test(killing_the_producer_leaves_whole_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

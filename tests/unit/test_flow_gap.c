/* Pieces that are lost in the middle of a stream, between two events of which both are whole. Readers that go
 * on behind such a hole see one long gap where several tokens came, take the usage behind it for the count of
 * what they saw, and call the answer complete. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_flow.h"
#include "tests/unit/fake_trw.h"

#define USAGE                                                                                                \
    "{\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,"                   \
    "\"completion_tokens\":6}}"

/* A, B, then a hole, then C, the finish, a usage and the end. */
static void stream_with_a_hole(struct drive *v, void (*hole)(struct drive *v)) {
    begin(v);
    drive_post(v, "/v1/chat/completions", "", CHAT);
    at(v, 3000, DIR_DOWN, SSE);
    event(v, 4000, DELTA("A"));
    event(v, 5000, DELTA("B"));
    v->now_ns = 6000;
    if (hole) hole(v);
    event(v, 7000, DELTA("C"));
    event(v, 8000, STOP);
    event(v, 8000, USAGE);
    event(v, 8000, "[DONE]");
    at(v, 8000, DIR_DOWN, LAST);
    end(v);
}

static void shed_by_a_full_queue(struct drive *v) {
    struct piece shed = {.kind = PIECE_DATA, .dir = DIR_DOWN, .off = v->off[DIR_DOWN], .n_shed = 300};
    drive_piece(v, shed, NULL);
    v->off[DIR_DOWN] += 300;
}
static void never_queued(struct drive *v) {
    v->off[DIR_DOWN] += 300;
}

static void a_whole_stream_has_all_of_it(void **state) {
    struct drive v;
    size_t n;
    stream_with_a_hole(&v, NULL);
    fake_events(&n);
    assert_int_equal(n, 4); /* three texts and the finish */
    hold(1, F_output_tokens_told, 6);
    hold(1, F_done_marker, 1);
    hold_text(1, F_end_by, "complete");
}

static void nothing_behind_a_hole_is_taken_for_the_streams(void **state) {
    static void (*const holes[])(struct drive * v) = {shed_by_a_full_queue, never_queued};
    static const enum loss losses[] = {LOSS_queue_full, LOSS_pieces_dropped};
    for (int i = 0; i < 2; i++) {
        struct drive v;
        size_t n;
        stream_with_a_hole(&v, holes[i]);
        const struct tok_event *e = fake_events(&n);
        assert_int_equal(n, 2); /* what came before is kept, with its times */
        assert_int_equal(e[0].t_ns, 4000);
        assert_int_equal(e[1].t_ns, 5000);
        absent(1, F_output_tokens_told);
        absent(1, F_finish_reason);
        absent(1, F_done_marker);
        assert_true(fake_loss_count(losses[i]) >= 1);
        const struct fake_loss *l = fake_losses(&n);
        uint64_t bytes = 0;
        for (size_t k = 0; k < n; k++) assert_int_equal(l[k].request, 1), bytes += l[k].bytes;
        assert_true(bytes >= 300);
        hold_text(1, F_end_by, "lost");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_stream_has_all_of_it),
        cmocka_unit_test(nothing_behind_a_hole_is_taken_for_the_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Addresses of the command line: every accepted form, and the words for every refused one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/addr.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static void accepted_forms_are_shown_as_they_are_meant(void **state) {
    static const struct {
        const char *text, *host, *shown;
        unsigned port;
        bool upstream;
    } cases[] = {
        {"8001", "", "127.0.0.1:8001", 8001, false},
        {":8001", "", "127.0.0.1:8001", 8001, false},
        {":0", "", "127.0.0.1:0", 0, false},
        {"0.0.0.0:1", "0.0.0.0", "0.0.0.0:1", 1, false},
        {"[::1]:8001", "::1", "[::1]:8001", 8001, false},
        {"[]:8001", "", "127.0.0.1:8001", 8001, false},
        {"localhost:65535", "localhost", "localhost:65535", 65535, true},
        {"http://gpu-7:8000", "gpu-7", "gpu-7:8000", 8000, true},
        {"http://:8000/", "", "127.0.0.1:8000", 8000, true},
        {"HTTP://[fe80::1%eth0]:80/", "fe80::1%eth0", "[fe80::1%eth0]:80", 80, true},
        {"8000/", "", "127.0.0.1:8000", 8000, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct addr a;
        char err[300] = "";
        if (!addr_parse(&a, cases[i].text, cases[i].upstream, err, sizeof err))
            fail_msg("%s: %s", cases[i].text, err);
        assert_string_equal(a.host, cases[i].host);
        assert_string_equal(a.shown, cases[i].shown);
        assert_int_equal(a.port, cases[i].port);
    }
}

static void refused_forms_say_why(void **state) {
    static const struct {
        const char *text, *why;
        bool upstream;
    } cases[] = {
        {"", "port is missing", false},
        {"localhost", "port is missing", false},
        {":", "port is missing", false},
        {"[::1]", "port is missing", false},
        {"[::1:80", "] is missing", false},
        {"::1:80", "brackets", false},
        {":65536", "65535", false},
        {":80x", "65535", false},
        {":-1", "port is missing", false},
        {":99999999999999999999", "65535", false},
        {":0", "port 0", true},
        {"http://:8000/v1", "leave /v1 to", true},
        {"h:1/v1/", "leave /v1/ to", true},
        {"https://h:1", "https", true},
        {"ftp://h:1", "only http://", true},
        {"http://me:pw@h:1", "passwords", true},
        {"http://:8001", "not an address", false},
        {"unix:", "path is missing", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct addr a;
        char err[300] = "";
        if (addr_parse(&a, cases[i].text, cases[i].upstream, err, sizeof err))
            fail_msg("%s was taken", cases[i].text);
        if (!strstr(err, cases[i].why)) fail_msg("%s: %s", cases[i].text, err);
    }
}

static void texts_too_long_are_refused(void **state) {
    char text[2000], err[300];
    struct addr a;
    memset(text, 'a', sizeof text);
    memcpy(text, "unix:", 5);
    text[sizeof text - 1] = 0;
    assert_false(addr_parse(&a, text, true, err, sizeof err));
    snprintf(text + sizeof text - 10, 10, ":80");
    assert_false(addr_parse(&a, text + 5, true, err, sizeof err));
    assert_false(addr_parse(&a, text + 5, false, err, sizeof err));
}

static void a_missing_host_is_both_loopbacks_in_order(void **state) {
    struct addr a;
    struct addr_list list;
    char err[300];
    assert_true(addr_parse(&a, ":8000", true, err, sizeof err));
    assert_int_equal(addr_resolve(&a, &list), 0);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.at[0].sa.sa_family, AF_INET);
    assert_int_equal(list.at[1].sa.sa_family, AF_INET6);
    assert_int_equal(addr_port(&list.at[0]), 8000);
    assert_int_equal(addr_port(&list.at[1]), 8000);
    assert_false(addr_equal(&list.at[0], &list.at[1]));
}

static void unix_paths_resolve_to_themselves(void **state) {
    struct addr a;
    struct addr_list list;
    char err[300];
    assert_true(addr_parse(&a, "unix:/tmp/x y/s:1", true, err, sizeof err));
    assert_string_equal(a.shown, "unix:/tmp/x y/s:1");
    assert_int_equal(addr_resolve(&a, &list), 0);
    assert_string_equal(list.at[0].un.sun_path, "/tmp/x y/s:1");
}

static void only_names_can_change_their_address(void **state) {
    static const char *const fixed[] = {":1", "127.0.0.1:1", "[::1]:1", "unix:/x"};
    struct addr a;
    char err[300];
    for (size_t i = 0; i < 4; i++) {
        assert_true(addr_parse(&a, fixed[i], true, err, sizeof err));
        assert_false(addr_is_name(&a));
    }
    assert_true(addr_parse(&a, "localhost:1", true, err, sizeof err));
    assert_true(addr_is_name(&a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_forms_are_shown_as_they_are_meant),
        cmocka_unit_test(refused_forms_say_why),
        cmocka_unit_test(texts_too_long_are_refused),
        cmocka_unit_test(a_missing_host_is_both_loopbacks_in_order),
        cmocka_unit_test(unix_paths_resolve_to_themselves),
        cmocka_unit_test(only_names_can_change_their_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

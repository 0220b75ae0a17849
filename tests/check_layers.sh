#!/bin/sh
# Who may include whom: schema knows nothing above it, recorder and analyzer never each other, and each library is
# included by one file (or the folder named here). Usage: check_layers.sh TOP
cd "$1" || exit 2
failed=0
passed=0
# forbid WHERE PATTERN WHY [EXCEPT]: no file under WHERE has an #include matching PATTERN
forbid() {
    found=$(grep -rnE "^#include [\"<]($2)" --include=*.c --include=*.h "$1" | grep -vE "^(${4:-none}):" )
    if [ -n "$found" ]; then
        printf '%s\n    %s\n' "$found" "$3"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
forbid schema 'recorder/|analyzer/' 'schema is the contract and knows neither side'
forbid recorder 'analyzer/' 'the recorder never includes the analyzer'
forbid analyzer 'recorder/' 'the analyzer never includes the recorder'
forbid schema 'uv\.h|cjson/|http_parser|sqlite3|openssl/' 'schema knows files and zstd only'
forbid recorder 'http_parser' 'one file knows the HTTP parser' 'recorder/http1.c'
forbid recorder 'cjson/' 'one file knows cJSON' 'recorder/[a-z/]*json\.[ch]'
forbid recorder 'openssl/' 'one file knows OpenSSL' 'recorder/[a-z/]*keyhash\.c'
forbid recorder 'sqlite3' 'the recorder has no SQL'
forbid analyzer 'uv\.h|http_parser|openssl/|zstd' 'the analyzer has no sockets'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

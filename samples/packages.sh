# What the programs and their tests are built with, by Debian's names; read by quickstart.sh and tests/run.sh.
BUILD_PACKAGES=(gcc libc6-dev cmake make pkg-config libuv1-dev libhttp-parser-dev libzstd-dev zlib1g-dev libcjson-dev
                libsqlite3-dev libssl-dev)
TEST_PACKAGES=(libcmocka-dev python3)

# Installs those of the named packages that are not there; needs root (or sudo) only then.
install_missing() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    echo "installing: ${missing[*]}" >&2
    "${sudo[@]}" apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

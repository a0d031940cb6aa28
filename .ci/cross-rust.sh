#!/usr/bin/env bash
# cargo for targets that rustup may not be able to bring:
#
#   .ci/cross-rust.sh i686    test --lib --tests ...   32 bit
#   .ci/cross-rust.sh s390x   test --lib --tests ...   big endian, under qemu
#   .ci/cross-rust.sh aarch64 test --lib --tests ...   NEON, under qemu
#   .ci/cross-rust.sh msan    test --lib --tests ...   x86-64 with MemorySanitizer, std included
#
# The toolchain is Debian's rustc-web with its library sources, unpacked privately under $CROSS_RUST
# (default ~/.cache/cross-rust) by the first call: about a minute, as root for apt-get. aarch64 has
# a ready-made standard library; for the others cargo builds one.
set -euo pipefail

home=${CROSS_RUST:-$HOME/.cache/cross-rust}
root=$home/root

install_toolchain() {
    apt-get update -qq
    # The gcc-multilib package conflicts with these.
    apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends libllvm22 qemu-user-static \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross \
        gcc-i686-linux-gnu libc6-dev-i386-cross >/dev/null

    # A private apt state, so that the machine's own architectures stay as they are.
    mkdir -p "$home/lists/partial" "$home/debs" "$root"
    cat >"$home/apt.conf" <<CONF
APT::Architectures { "amd64"; "arm64"; };
Dir::State::lists "$home/lists";
Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
CONF
    (
        export APT_CONFIG=$home/apt.conf
        apt-get update -qq || true # one unreachable list is not fatal, a missing package is
        std=$(apt-cache pkgnames libstd-rust-web- | grep -E '^libstd-rust-web-[0-9]' | sort -V |
            tail -n 1)
        cd "$home/debs"
        rm -f ./*.deb
        apt-get download -qq rustc-web:amd64 "$std:amd64" libstd-rust-web-dev:amd64 \
            libstd-rust-web-dev:arm64 rust-web-src
    )
    for deb in "$home"/debs/*.deb; do dpkg -x "$deb" "$root"; done

    # The sanitizer runtimes of rustup's toolchain fit as long as both have the same LLVM major.
    cp "$(rustc --print sysroot)"/lib/rustlib/x86_64-unknown-linux-gnu/lib/librustc-*_rt.{msan,asan}.a \
        "$root/usr/lib/rustlib/x86_64-unknown-linux-gnu/lib/"
    touch "$home/ready"
}

mkdir -p "$home"
(
    flock 9
    [ -e "$home/ready" ] || install_toolchain >&2
) 9>"$home/lock"

name=$1 command=$2
shift 2
std=-Zbuild-std flags=
case $name in
aarch64) target=aarch64-unknown-linux-gnu std= ;;
s390x) target=s390x-unknown-linux-gnu ;;
i686) target=i686-unknown-linux-gnu ;;
msan)
    target=x86_64-unknown-linux-gnu
    flags="-Zsanitizer=memory -Zsanitizer-memory-track-origins"
    ;;
*)
    echo "$0: aarch64, s390x, i686 or msan" >&2
    exit 2
    ;;
esac

for arch in aarch64 s390x i686; do
    lower=${arch}_unknown_linux_gnu upper=${arch^^}_UNKNOWN_LINUX_GNU
    export "CC_$lower=$arch-linux-gnu-gcc" "CARGO_TARGET_${upper}_LINKER=$arch-linux-gnu-gcc"
    export "CARGO_TARGET_${upper}_RUNNER=qemu-${arch/i686/i386}-static -E CHAPOLY_EMULATED=1 \
-L /usr/$arch-linux-gnu"
done
# Most x86-64 systems run 32-bit programs themselves.
loader=/usr/i686-linux-gnu/lib/ld-linux.so.2
if $loader --version >/dev/null 2>&1; then
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUNNER="$loader --library-path ${loader%/*}"
fi
export LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu RUSTC=$root/usr/bin/rustc RUSTC_BOOTSTRAP=1
export RUSTFLAGS="$flags ${RUSTFLAGS:-}" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$home/target-$name}
# shellcheck disable=SC2086 # $std is a flag or nothing
exec cargo "$command" $std --target "$target" "$@"

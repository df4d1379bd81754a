# The parts of a build that runs on other systems: an old C library to compile against, and the libraries that go into
# the programs. Sourced by scripts/package with the repository root as working directory.
# shellcheck shell=bash disable=SC2016
#
# Everything comes from Debian's archive by this machine's own sources of packages. Nothing is installed: packages are
# unpacked below build/portable/ARCH, so root is not needed.
#
#   sysroot   glibc 2.31 and libgcc_s of Debian 11
#   debian    headers and static libraries of Debian 12's packages
#   libraries hwloc, libevent and PMIx, compiled from Debian 12's sources without plug-ins
#   bin       compilers that use the three

# Of Debian 11: what programs are compiled against and never bring along.
readonly kSysroot="libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgcc-s1"
# Of Debian 12. The shared libraries of fmt, yaml-cpp and the MPIs are for CMake and the linker only.
readonly kDebian="libcli11-dev nlohmann-json3-dev libfmt-dev libfmt9 libasio-dev libexpected-dev libyaml-cpp-dev
  libyaml-cpp0.7 libkainjow-mustache-dev libssl-dev libeigen3-dev libopenmpi-dev libopenmpi3 libmpich-dev libmpich12"
readonly kSources="hwloc libevent pmix"

# use_architecture NAME: sets the variables of this file for x86_64 or aarch64.
use_architecture() {
  architecture=$1 triplet=$1-linux-gnu portable=$PWD/build/portable/$1
  case $1 in
    x86_64) debian_architecture=amd64 first_glibc=2.2.5 ;;
    aarch64) debian_architecture=arm64 first_glibc=2.17 ;;
  esac
  cross=''
  [ "$1" = "$(uname -m)" ] || cross=$triplet-
}

# once NAME COMMAND...: the command, if it has not succeeded before in this folder with the same recipe.
once() {
  local mark=$portable/done/$1 recipe
  shift
  recipe=$(sha256sum scripts/packaging/portable.sh)
  mkdir -p "${mark%/*}"
  [ "$(cat "$mark" 2>/dev/null)" = "$recipe" ] || { "$@" && printf '%s\n' "$recipe" >"$mark"; }
}

# archive SUITE SOURCE...: prepares apt, with files of its own, for that suite.
archive() {
  local suite=$1 folder=$portable/apt-$1 uri release component
  mkdir -p "$folder/lists/partial" "$folder/archives/partial"
  : >"$folder/sources.list"
  while read -r uri release component; do
    case $release in bookworm*) ;; *) continue ;; esac
    [ "$suite" = bookworm ] || [ "$release" = bookworm ] || continue
    printf 'deb [signed-by=%s] %s %s %s\n' /usr/share/keyrings/debian-archive-keyring.gpg "$uri" \
      "${release/#bookworm/$suite}" "$component"
    [ "$suite" != bookworm ] || printf 'deb-src [signed-by=%s] %s %s %s\n' \
      /usr/share/keyrings/debian-archive-keyring.gpg "$uri" "$release" "$component"
  done >"$folder/sources.list" \
    < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u -k 2)
  printf '%s;\n' "Dir::State \"$folder\"" "Dir::State::lists \"$folder/lists\"" "Dir::State::status \"/dev/null\"" \
    "Dir::Cache \"$folder\"" "Dir::Etc::SourceList \"$folder/sources.list\"" 'Dir::Etc::SourceParts "/dev/null"' \
    "APT::Architecture \"$debian_architecture\"" "APT::Architectures \"$debian_architecture\"" \
    'APT::Sandbox::User "root"' >"$folder/apt.conf"
  apt=(apt-get -q -c "$folder/apt.conf")
  [ -s "$folder/sources.list" ] || { echo "apt has no source for bookworm here"; return 1; }
  "${apt[@]}" update
}

# unpack SUITE FOLDER PACKAGE...
unpack() {
  local suite=$1 folder=$2 package
  shift 2
  archive "$suite" || return
  rm -rf "$portable/packages" "$folder"
  mkdir -p "$portable/packages" "$folder"
  (cd "$portable/packages" && "${apt[@]}" download "$@") || return
  for package in "$portable"/packages/*.deb; do dpkg-deb -x "$package" "$folder" || return; done
}

fetch_sysroot() {
  local link
  # shellcheck disable=SC2086  # The lists are words.
  unpack bullseye "$portable/sysroot" $kSysroot || return
  # Links that are absolute would name this system's own C library.
  find "$portable/sysroot" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$portable/sysroot$(readlink "$link")" "$link"
  done
}

fetch_debian() {
  # shellcheck disable=SC2086
  unpack bookworm "$portable/debian" $kDebian
}

fetch_sources() {
  archive bookworm || return
  rm -rf "$portable/sources"
  mkdir -p "$portable/sources"
  # shellcheck disable=SC2086
  (cd "$portable/sources" && "${apt[@]}" source $kSources)
}

# Compilers for C and C++ that see the old C library, and link libstdc++ statically: with the folder "lib" in front of
# the compiler's own, -lstdc++ finds no shared one.
make_compilers() {
  local function compiler headers flags s=$portable/sysroot
  mkdir -p "$portable/bin" "$portable/lib"
  {
    # These have a newer version of 2019, which differs in how it sets errno.
    for function in exp exp2 log log2 pow; do
      printf '__asm__(".symver %s,%s@GLIBC_%s");\n' "$function" "$function" "$first_glibc"
    done
    # Waits of std::condition_variable and of timed mutexes that glibc has had since 2.30.
    printf '%s\n' '#ifdef __cplusplus' '#include <bits/c++config.h>' '#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT' \
      '#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK' '#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK' '#endif'
  } >"$portable/portable.h"
  # Only these headers, in this order: those of the compiler's own C library must not mix with the old ones.
  flags="--sysroot=$s -B$s/usr/lib/$triplet -B$s/lib/$triplet -L$portable/lib -L$s/usr/lib/$triplet -L$s/lib/$triplet"
  flags+=" -pthread -include $portable/portable.h -nostdinc"
  # No message contains a path of this machine.
  flags+=" -ffile-prefix-map=$PWD/="
  for compiler in gcc g++; do
    headers=''
    [ "$compiler" = gcc ] || headers=$(LC_ALL=C "$cross$compiler" -E -x c++ -v /dev/null 2>&1 |
      sed -n '/^#include </,/^End/s/^ \(.*c++.*\)/-isystem \1/p' | tr '\n' ' ')
    headers+="-isystem $("$cross$compiler" -print-file-name=include) -isystem $s/usr/include/$triplet"
    headers+=" -isystem $s/usr/include -isystem $portable/debian/usr/include/$triplet"
    # An absolute path: a compiler of this name, found by PATH, would be the script itself.
    printf '#!/bin/sh\nexec %s %s %s "$@" -ldl\n' "$(command -v "$cross$compiler")" "$flags" "$headers" \
      >"$portable/bin/$compiler"
    chmod +x "$portable/bin/$compiler"
  done
  # What Debian 12's libstdc++ needs of a newer glibc.
  cat >"$portable/shim.c" <<'SHIM'
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* 0: there may be several threads, so reference counts are always atomic. */
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) abort();
  return value;
}
SHIM
  "$portable/bin/gcc" -O2 -fPIC -c "$portable/shim.c" -o "$portable/shim.o" || return
  cp "$("$cross"g++ -print-file-name=libstdc++.a)" "$portable/lib/" &&
    "$cross"ar q "$portable/lib/libstdc++.a" "$portable/shim.o"
}

# The wrappers of Debian's MPIs print paths of this system; these print those of the unpacked packages.
make_mpi_compilers() {
  local lib=$portable/debian/usr/lib/$triplet
  write_mpi_compiler mpicc.openmpi "-I$lib/openmpi/include -L$lib/openmpi/lib -lmpi"
  write_mpi_compiler mpicc.mpich "-I$portable/debian/usr/include/$triplet/mpich -L$lib -lmpich"
}
write_mpi_compiler() {
  printf '#!/bin/sh\nif [ "$1" = -show ]; then echo "gcc %s"; else exec "%s" %s "$@"; fi\n' "$2" "$portable/bin/gcc" \
    "$2" >"$portable/bin/$1"
  chmod +x "$portable/bin/$1"
}

# Compiled for the prefix /usr and installed below "libraries": the programs then contain no path of the build.
# Settings are read from /etc/ddlrun, not from those of another version below /etc.
build_libraries() {
  local out=$portable/libraries build=$portable/build
  rm -rf "$out" "$build"
  build_libevent && build_hwloc && build_pmix
}
configure_options() {
  printf '%s\n' --prefix=/usr --sysconfdir=/etc/ddlrun "CC=$portable/bin/gcc" "CXX=$portable/bin/g++" "CFLAGS=-O2 -g" \
    --with-pic --enable-static --disable-dependency-tracking --enable-silent-rules \
    ${cross:+"--host=$triplet"} ${cross:+"AR=${cross}ar"} ${cross:+"RANLIB=${cross}ranlib"}
}
build_libevent() {
  local off=()
  for feature in OPENSSL BENCHMARK TESTS REGRESS SAMPLES; do off+=("-DEVENT__DISABLE_$feature=ON"); done
  cmake -S "$portable"/sources/libevent-*/ -B "$build/libevent" -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$portable/toolchain.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DEVENT__LIBRARY_TYPE=STATIC "${off[@]}" &&
    DESTDIR=$out cmake --build "$build/libevent" --target install
}
build_hwloc() {
  local options source off=(plugins libxml2 cairo opencl cuda nvml rsmi levelzero gl pci libudev picky)
  mapfile -t options < <(configure_options)
  source=$(echo "$portable"/sources/hwloc-*/)
  mkdir -p "$build/hwloc"
  (
    cd "$build/hwloc" || exit
    "$source/configure" "${options[@]}" --disable-shared "${off[@]/#/--disable-}" &&
      make -C include install "DESTDIR=$out" &&
      make -C hwloc -j "$(nproc)" install "DESTDIR=$out" &&
      install -m 644 hwloc.pc "$out/usr/lib/pkgconfig/hwloc.pc"
  )
}
# The static library is ddlrun's server. The shared one is for clients, where the system has none.
build_pmix() {
  local options source
  source=$(echo "$portable"/sources/pmix-*/)
  mapfile -t options < <(configure_options)
  [ -x "$source/configure" ] || (cd "$source" && ./autogen.pl --force) || return
  mkdir -p "$build/pmix"
  (
    cd "$build/pmix" || exit
    "$source/configure" "${options[@]}" "LDFLAGS=-L$out/usr/lib" LIBS="-levent_pthreads -levent_core -lm" \
      --enable-shared --disable-dlopen \
      --disable-pmix-binaries --disable-pty-support --with-tests-examples=no --with-munge=no --with-zlib=no \
      --with-curl=no --with-jansson=no "--with-libevent=$out/usr" "--with-libevent-libdir=$out/usr/lib" \
      "--with-hwloc=$out/usr" "--with-hwloc-libdir=$out/usr/lib" &&
      make -j "$(nproc)" install "DESTDIR=$out"
  ) || return
  mkdir -p "$out/usr/lib/shared"
  mv "$out"/usr/lib/libpmix.so* "$out/usr/lib/shared/"
  rm -f "$out"/usr/lib/*.la
  # ddlrun guards the server's port by functions that take the place of these two (launcher/pmix/accept_guard.h).
  "${cross}objcopy" --redefine-sym accept=ddl_pmix_accept --redefine-sym recv=ddl_pmix_recv "$out/usr/lib/libpmix.a"
  # With the static library pkg-config must name what it needs, too.
  sed -i -e 's/^Libs:.*/Libs: -L${libdir} -lpmix -levent_pthreads -levent_core -lhwloc -lm/' \
    -e '/^\(Libs\|Requires\).private/d' -e 's/^Cflags:.*/Cflags: -I${includedir}/' "$out/usr/lib/pkgconfig/pmix.pc"
}

write_toolchain() {
  mkdir -p "$portable"
  {
    # With a system's name CMake would take a build for this machine for one that cannot run here.
    # ddlrun prints what is installed about it.
    [ -z "$cross" ] || printf 'set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR %s)\n%s\n' "$architecture" \
      "set(CMAKE_CROSSCOMPILING_EMULATOR qemu-$architecture -L \"$portable/sysroot\")"
    printf 'set(CMAKE_C_COMPILER "%s")\nset(CMAKE_CXX_COMPILER "%s")\n' "$portable/bin/gcc" "$portable/bin/g++"
    printf 'set(CMAKE_LIBRARY_ARCHITECTURE %s)\n' "$triplet"
    printf 'set(CMAKE_FIND_ROOT_PATH "%s" "%s")\n' "$portable/libraries" "$portable/debian"
    printf 'set(CMAKE_FIND_ROOT_PATH_MODE_%s)\n' 'PROGRAM NEVER' 'LIBRARY ONLY' 'INCLUDE ONLY' 'PACKAGE ONLY'
  } >"$portable/toolchain.cmake"
}

# prepare_portable: fetches and compiles what is not there yet.
prepare_portable() {
  write_toolchain &&
    once sysroot fetch_sysroot &&
    once debian fetch_debian &&
    once sources fetch_sources &&
    once compilers make_compilers &&
    make_mpi_compilers &&
    once libraries build_libraries
}

# Shared by quickstart and test; sourced with the repository root as working directory.
# shellcheck shell=bash

# A compiler process takes up to a gigabyte: no more of them at a time than cores and memory allow.
job_count() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  [ "$gigabytes" -ge "$cores" ] || cores=$gigabytes
  [ "$cores" -ge 1 ] || cores=1
  echo "$cores"
}

# quarters LOG: ninja's output goes into the file; each quarter of the steps is one line of output.
quarters() {
  awk -v log_file="$1" '{ print >>log_file; fflush(log_file) }
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), step, "/")
      quarter = int(4 * step[1] / step[2])
      if (quarter > shown) { printf "built %s of %s parts\n", step[1], step[2]; fflush(); shown = quarter }
    }'
}

# build PRESET [TARGET...]: configures and builds. On a terminal one line moves; elsewhere each quarter is a line.
# After a failure the end of build/PRESET.log is shown.
build() {
  local preset=$1 log=build/$1.log
  shift
  mkdir -p build
  if ! cmake --preset "$preset" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    return 1
  fi
  local command=(cmake --build --preset "$preset" --parallel "$(job_count)")
  [ $# -eq 0 ] || command+=(--target "$@")
  if [ -t 1 ]; then
    "${command[@]}" </dev/null
  elif ! "${command[@]}" 2>&1 </dev/null | quarters "$log"; then
    # Only what failed, not what else was being compiled at the time.
    { grep -A 25 '^FAILED:' "$log" || tail -n 40 "$log"; } | head -n 120 >&2
    return 1
  fi
}

# With ccache a second run is much shorter, also in another clone; it is used if it is installed.
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi

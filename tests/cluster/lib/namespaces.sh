# Mounts that namespaces hide behind, and processes that hold namespaces. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.

# hold_trees DIR...: remembers these folders, which cover() keeps in sight.
hold_trees() {
  trees=("$@") tree_fds=()
  local tree fd
  for tree in "${trees[@]}"; do
    exec {fd}<"$tree"
    tree_fds+=("$fd")
  done
}
release_trees() {
  local fd
  for fd in "${tree_fds[@]}"; do exec {fd}<&-; done
}

# cover FOLDER OPTIONS: an empty tmpfs hides the folder, all but the trees that lie in it.
cover() {
  local folder=$1 i
  mkdir -p "$folder"
  mount -t tmpfs -o "$2" ddl-cluster "$folder"
  for i in "${!trees[@]}"; do
    case ${trees[i]} in
      "${folder%/}"/*)
        mkdir -p "${trees[i]}"
        # Not canonicalised: the path that the descriptor once had leads to the new, empty folder.
        mount --no-canonicalize --rbind "/proc/self/fd/${tree_fds[i]}" "${trees[i]}"
        ;;
    esac
  done
}

# The first folder above the path that others than its owner may not pass.
closed_folder_above() {
  local way='' part parts
  IFS=/ read -r -a parts <<<"${1%/*}"
  for part in "${parts[@]}"; do
    way=${way%/}/$part
    [[ $(stat -c %A "$way") = *x ]] || [[ $(stat -c %A "$way") = *t ]] || { echo "$way"; return; }
  done
}

# until_gone PID: waits for the end of a process that was killed; if it was a namespace's first, of all of them.
until_gone() {
  local tries=0
  while [ -e "/proc/$1/ns/pid" ] && readlink "/proc/$1/ns/pid" >/dev/null 2>&1; do
    [ $((tries += 1)) -le 500 ] || die "process $1 does not end"
    sleep 0.02
  done
}

# A process with its namespace, so that a number that is used again is never taken for it.
identity_of() { printf '%s %s\n' "$1" "$(readlink "/proc/$1/ns/pid")"; }
# living_process FILE: the process whose identity the file holds, if it is alive.
living_process() {
  local pid namespace
  { read -r pid namespace <"$1"; } 2>/dev/null || return 1
  [ "$(readlink "/proc/$pid/ns/pid" 2>/dev/null)" = "$namespace" ] || return 1
  echo "$pid"
}

# Sets number_outside to what this process is called where /proc was mounted: to be asked before a new one is.
# shellcheck disable=SC2034  # For whoever asks.
ask_number_outside() { read -r number_outside _ </proc/self/stat; }

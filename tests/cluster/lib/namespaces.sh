# Mounts that hide folders in namespaces, and processes that own namespaces. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.

# hold_trees DIR...: opens these folders, which cover() keeps visible.
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

# cover FOLDER OPTIONS: hides the folder under an empty tmpfs, except for the trees in it.
cover() {
  local folder=$1 i
  mkdir -p "$folder"
  mount -t tmpfs -o "$2" ddl-cluster "$folder"
  for i in "${!trees[@]}"; do
    case ${trees[i]} in
      "${folder%/}"/*)
        mkdir -p "${trees[i]}"
        # Not canonicalised: the former path of the descriptor is now the new, empty folder.
        mount --no-canonicalize --rbind "/proc/self/fd/${tree_fds[i]}" "${trees[i]}"
        ;;
    esac
  done
}

# Prints the first folder above the path that only its owner may search.
closed_folder_above() {
  local way='' part parts
  IFS=/ read -r -a parts <<<"${1%/*}"
  for part in "${parts[@]}"; do
    way=${way%/}/$part
    [[ $(stat -c %A "$way") = *x ]] || [[ $(stat -c %A "$way") = *t ]] || { echo "$way"; return; }
  done
}

# until_gone PID: waits for the end of a killed process; for the first process of a namespace, of all of its
# processes.
until_gone() {
  local tries=0
  while [ -e "/proc/$1/ns/pid" ] && readlink "/proc/$1/ns/pid" >/dev/null 2>&1; do
    [ $((tries += 1)) -le 500 ] || die "process $1 does not end"
    sleep 0.02
  done
}

# The pid with the PID namespace, so that a reused pid is never mistaken for the process.
identity_of() { printf '%s %s\n' "$1" "$(readlink "/proc/$1/ns/pid")"; }
# living_process FILE: prints the pid of the process whose identity is in the file, if it is alive.
living_process() {
  local pid namespace
  { read -r pid namespace <"$1"; } 2>/dev/null || return 1
  [ "$(readlink "/proc/$pid/ns/pid" 2>/dev/null)" = "$namespace" ] || return 1
  echo "$pid"
}

# Sets outer_pid to the pid of this process in the PID namespace of /proc: to be called before a new /proc is mounted.
# shellcheck disable=SC2034  # Used by the caller.
read_outer_pid() { read -r outer_pid _ </proc/self/stat; }

# Puts this process, and so all processes of the cluster, into one CPU group. Otherwise each session is a group, and
# Linux 6.18 keeps the others from running for seconds if one thread of a group computes and another sleeps for
# microseconds. Hosts of a real cluster do not share CPUs. Where it is not allowed, nothing happens.
share_cpus() {
  local group
  group=$(cpu_group) && { mkdir -p "$group" && echo "$$" >"$group/cgroup.procs"; } 2>/dev/null || true
}
# Removes the group after the last cluster.
leave_cpus() {
  local group
  group=$(cpu_group) && rmdir "$group" 2>/dev/null || true
}
cpu_group() {
  local root=/sys/fs/cgroup
  if [ -f "$root/cpu/cpu.shares" ]; then
    echo "$root/cpu/ddl-cluster"
  else
    grep -qs '\bcpu\b' "$root/cgroup.subtree_control" && echo "$root/ddl-cluster"
  fi
}

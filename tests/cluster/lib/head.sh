# The head: a host like the others, whose namespaces are the parents of those of the hosts. Sourced by
# tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.

head_process() { living_process "$state/head"; }

# start_head PARENT: PARENT may be ''. Errors go to $state/log.
start_head() {
  local ready pid
  exec {ready}< <(exec env -i PATH="$PATH" LANG=C.UTF-8 setsid "$self" --state "$state" --keep-head "$1" \
    2>>"$state/log" </dev/null)
  read -r -u "$ready" pid || return 1
  exec {ready}<&-
  # The pid that it has printed is that of this PID namespace.
  identity_of "$pid" >"$state/head"
}

# The parent of the head's first process: ends with it, and ends it after the process PARENT has ended.
keep_head() {
  local parent=$1
  local namespaces=(unshare --mount --uts --ipc --net --pid --fork --kill-child)
  [ -n "$parent" ] || exec "${namespaces[@]}" "$self" --head-init
  "${namespaces[@]}" "$self" --head-init &
  tail --pid="$parent" -f /dev/null >/dev/null &
  exec >&-
  wait -n || true
  # shellcheck disable=SC2046  # One word for each process.
  kill -KILL $(jobs -p) 2>/dev/null
  exit
}

# The first process of the head: reaps orphans, and waits to be killed.
head_init() {
  read_outer_pid
  mount -t proc proc /proc
  cd /
  echo "$outer_pid"
  exec >/dev/null
  sleep infinity &
  wait
}

# enter_head COMMAND...: runs it on the head, in the same working directory.
enter_head() {
  local pid
  pid=$(head_process) || return 1
  nsenter --target "$pid" --mount --uts --ipc --net --pid --root --wd -- "$self" --at "$PWD" "$@"
}

# furnish_head SIZE SLURM TREE...: sets up the head, with Slurm if SLURM is not ''; then starts the hosts.
furnish_head() {
  local size=$1 slurm=$2 folder
  shift 2
  hold_trees "$@"
  own_name head
  cover /run mode=755,size=64m
  mkdir -p "$kInside/pid" "$kInside/log" /run/lock /run/sshd
  chmod 1777 /run/lock
  cover /tmp mode=1777,size=1g
  cover /dev/shm mode=1777,size=512m
  # All hosts share the homes, as on real clusters. The ssh configuration of the caller is hidden.
  cover "$(root_home)" mode=755,size=64m
  cover /home mode=755,size=64m
  local tree
  for tree in "${trees[@]}"; do
    while folder=$(closed_folder_above "$tree"); [ -n "$folder" ]; do cover "$folder" mode=755,size=4m; done
  done
  printf '%s\n' "${trees[@]}" >"$kInside/trees"
  own_etc
  make_accounts
  make_keys
  write_names "$size"
  make_networks "$size"
  start_head_daemons
  [ -z "$slurm" ] || make_slurm "$size"
  seq -f 'node%g' "$size" >"$kInside/hosts"
  # shellcheck disable=SC2046  # One word for each host.
  start_hosts $(all_hosts) inner
  release_trees
}

own_name() { echo "$1" >/proc/sys/kernel/hostname; }

# Replaces /etc by a copy, to which accounts, names and keys are added.
own_etc() {
  mkdir "$kInside/etc"
  mount -t tmpfs -o mode=755,size=256m ddl-cluster "$kInside/etc"
  cp -a /etc/. "$kInside/etc"
  mount --move "$kInside/etc" /etc
  rmdir "$kInside/etc"
}

# The sshd of the head, and those of the addresses "changed", "unknown" and "mute".
start_head_daemons() {
  local addresses=(-o ListenAddress="$(address_of head)")
  ! has_ipv6 || addresses+=(-o ListenAddress="[$(address6_of head)]")
  head_sshd "${addresses[@]}"
  head_sshd -o HostKey="$kSshd/other_host_key" \
    -o ListenAddress="$(address_of changed)" -o ListenAddress="$(address_of unknown)"
  head_sshd -o ListenAddress="$(address_of mute)"
  local mute=$! name
  for name in head changed unknown mute; do until_listening "$name" "$$"; done
  # The kernel accepts connections for a stopped daemon.
  kill -STOP "$mute"
}
# In a new session: the kernel would continue a stopped process group that becomes orphaned.
head_sshd() {
  setsid "$(find_sshd)" -D -E "$kInside/log/head" -f "$kSshd/sshd_config" "$@" </dev/null >/dev/null 2>&1 &
}

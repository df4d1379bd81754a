# A host: sshd as the first process of new namespaces; the host ends with it. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.

all_hosts() { cat "$kInside/hosts"; }
host_process() { living_process "$kInside/pid/$1"; }
require_host() { [ "$1" = inner ] || grep -qx "${1:-none}" "$kInside/hosts" || die "there is no host \"${1:-}\""; }

# start_hosts NAME...: starts all at once; returns when every one accepts connections.
start_hosts() {
  local name fds=() fd pid i=0
  for name in "$@"; do
    # An empty environment, as that of a daemon: hosts must not inherit that of the tests.
    exec {fd}< <(exec env -i PATH="$PATH" LANG=C.UTF-8 setsid nsenter --net="/run/netns/$name" \
      unshare --mount --uts --ipc --pid --fork --kill-child "$self" --host-init "$name" \
      2>>"$kInside/log/$name" </dev/null)
    fds+=("$fd")
  done
  for name in "$@"; do
    fd=${fds[i]}
    read -r -u "$fd" pid || die "$name does not start: $(tail -n 1 "$kInside/log/$name")"
    exec {fd}<&-
    identity_of "$pid" >"$kInside/pid/$name"
    i=$((i + 1))
  done
  for name in "$@"; do until_listening "$name" "$(host_process "$name")"; done
  ! has_slurm || start_slurmd "$@"
}

# until_listening NAME PROCESS: waits until port 22 of NAME is open: state 0A in /proc/net/tcp of the process's
# network. It sends nothing, so it also works for a host in a partition.
until_listening() {
  local tries=0 number
  number=$(printf '%02X' "$(number_of "$1")")
  until grep -qs " \(00000000\|${number}004D0A\):0016 00000000:0000 0A" "/proc/$2/net/tcp"; do
    [ $((tries += 1)) -le 500 ] || die "sshd on $1 does not listen: $(tail -n 1 "$kInside/log/$1")"
    sleep 0.02
  done
}

# Becomes the host's sshd. Its first line of output is its pid on the head.
host_init() {
  local name=$1 paths
  readarray -t paths <"$kInside/trees"
  hold_trees "${paths[@]}"
  read_outer_pid
  own_name "$name"
  mount -t proc proc /proc
  own_sys
  cover /tmp mode=1777,size=256m
  cover /dev/shm mode=1777,size=512m
  cover /run mode=755,size=16m
  mkdir -p /run/sshd /run/lock
  chmod 1777 /run/lock
  release_trees
  cd /
  echo "$outer_pid"
  exec >&2
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  exec "$(find_sshd)" -D -e -f "$kSshd/sshd_config"
}

# /sys/class/net shows the network of the process that mounts it. If that is forbidden, the /sys of the machine
# remains.
own_sys() {
  mkdir -p /run/sys
  mount -t sysfs sysfs /run/sys 2>/dev/null || return 0
  [ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup /run/sys/fs/cgroup
  mount --move /run/sys /sys
}

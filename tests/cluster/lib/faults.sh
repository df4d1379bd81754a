# Faults of hosts. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.

kill_host() {
  require_host "${1:-}"
  local pid
  set_links "$1" down
  pid=$(host_process "$1") || return 0
  kill -KILL "$pid"
  rm -f "$kInside/pid/$1"
  until_gone "$pid"
}

restart_host() {
  kill_host "$@"
  disconnect_host "$1"
  connect_hosts "$1"
  start_hosts "$1"
}

partition() {
  require_host "${1:-}"
  if [ $# -eq 1 ]; then
    set_links "$1" down
  else
    require_host "$2"
    drop_packets "$1" "$2" replace
    drop_packets "$2" "$1" replace
  fi
}

heal() {
  require_host "${1:-}"
  if [ $# -eq 1 ]; then
    set_links "$1" up
  else
    require_host "$2"
    drop_packets "$1" "$2" delete
    drop_packets "$2" "$1" delete
  fi
}

on_host() {
  local pid
  pid=$(host_process "$1") || die "$1 is dead"
  shift
  nsenter --target "$pid" --mount --pid --root --wd -- "$@"
}

# Shrinks the file system to the size of its contents; a size of 0 would mean no limit.
fill() {
  require_host "${1:-}"
  local total free size used inodes_free
  read -r total free size used inodes_free < <(on_host "$1" stat -f -c '%b %f %S %c %d' /tmp)
  local bytes=$(((total - free) * size))
  [ "$bytes" -gt 0 ] || bytes=$size
  on_host "$1" mount -o "remount,size=$bytes,nr_inodes=$((used - inodes_free))" /tmp
}

drain() {
  require_host "${1:-}"
  on_host "$1" mount -o remount,size=256m,nr_inodes=100000 /tmp
}

cover_file() {
  [ $# -eq 3 ] || wrong_usage "cover needs a host, a path and a file"
  require_host "$1"
  if [ "$3" = --undo ]; then
    on_host "$1" umount "$2"
  else
    on_host "$1" mount --bind "$3" "$2"
  fi
}

# The burst, which is sent without delay, must be small compared with the messages of the tests. But it must be at
# least the rate times the timer resolution of the kernel, or the link would be slower than its rate.
limit_rate() {
  [ $# -eq 2 ] || wrong_usage "rate needs a host and a rate"
  require_host "$1"
  local interface burst=64kb
  interface=$(interface_of "$1")
  tc -n "$1" qdisc del dev "$interface" root 2>/dev/null || true
  [ "$2" != --undo ] || return 0
  [[ $2 != *0gbit ]] || burst=160kb
  tc -n "$1" qdisc add dev "$interface" root tbf rate "$2" burst "$burst" latency 20ms ||
    die "$1 cannot be given a rate of \"$2\""
}

twin() {
  require_host "${1:-}"
  if [ "${2:-}" = --undo ]; then
    ip -n "$1" link delete docker0
  else
    ip -n "$1" link add docker0 type bridge
    ip -n "$1" addr add 172.17.0.1/16 dev docker0
    ip -n "$1" link set docker0 up
  fi
}

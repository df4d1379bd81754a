# Networks of the cluster. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.
#
#   10.77.0.0/24, fd77::/64   head and hosts; the interface is called eth0 on odd hosts and ens3 on even ones
#   10.78.0.0/24              hosts only, ib0: as a fabric of a real cluster
#   10.79.0.0/30              node1 and inner only

readonly kSpecial="silent refused changed unknown mute"

# The last number of an address.
number_of() {
  case $1 in
    node*) echo "${1#node}" ;;
    head) echo 254 ;;
    silent) echo 240 ;;
    refused) echo 241 ;;
    changed) echo 242 ;;
    unknown) echo 243 ;;
    mute) echo 244 ;;
    inner) echo 0 ;; # is in no common network
  esac
}
address_of() { echo "10.77.0.$(number_of "$1")"; }
address6_of() { printf 'fd77::%x\n' "$(number_of "$1")"; }
interface_of() { [ $(($(number_of "$1") % 2)) -eq 1 ] && echo eth0 || echo ens3; }

has_ipv6() { [ -e /proc/sys/net/ipv6 ]; }

# Names are resolved only by the copy of /etc/hosts, without a name server and its timeouts.
write_names() {
  local name
  {
    echo "127.0.0.1 localhost"
    ! has_ipv6 || echo "::1 localhost ip6-localhost"
    for name in head $kSpecial $(seq -f 'node%g' "$1"); do echo "$(address_of "$name") $name"; done
    if has_ipv6; then
      for name in head $(seq -f 'node%g' "$1"); do echo "$(address6_of "$name") $name-ip6"; done
    fi
    for name in $(seq -f 'node%g' "$1"); do echo "10.78.0.$(number_of "$name") $name-ib0"; done
    echo "10.79.0.2 inner"
  } >/etc/hosts.new
  mv /etc/hosts.new /etc/hosts
  sed -i '/^hosts:/d' /etc/nsswitch.conf 2>/dev/null || true
  echo "hosts: files" >>/etc/nsswitch.conf
}

# Commands for ip -batch, for all hosts at once: a process for each command would take seconds.
# The head's bridges have fixed hardware addresses: otherwise a bridge has that of a port, which changes with the
# hosts.
head_commands() {
  local name
  cat <<-END
	link set lo up
	link add cluster0 address 02:77:00:00:00:fe type bridge
	link set cluster0 up
	addr add $(address_of head)/24 dev cluster0
	link add cluster1 address 02:78:00:00:00:fe type bridge
	link set cluster1 up
	END
  ! has_ipv6 || echo "addr add $(address6_of head)/64 dev cluster0 nodad"
  for name in $kSpecial; do
    [ "$name" = silent ] || echo "addr add $(address_of "$name")/24 dev cluster0"
  done
  # No host has this hardware address, and a permanent entry needs no ARP.
  echo "neigh add $(address_of silent) lladdr 02:00:00:00:00:f0 dev cluster0 nud permanent"
}
# The hardware address is the same after a restart of the host, because the others have cached it.
cable_commands() {
  local name=$1 number
  number=$(printf '%02x' "$(number_of "$name")")
  cat <<-END
	link add $name-eth type veth peer name $(interface_of "$name") address 02:77:00:00:00:$number netns $name
	link add $name-ib type veth peer name ib0 address 02:78:00:00:00:$number netns $name
	link set $name-eth master cluster0
	link set $name-ib master cluster1
	link set $name-eth up
	link set $name-ib up
	END
}
host_commands() {
  local name=$1 interface
  interface=$(interface_of "$name")
  cat <<-END
	link set lo up
	addr add $(address_of "$name")/24 dev $interface
	link set $interface up
	addr add 10.78.0.$(number_of "$name")/24 dev ib0
	link set ib0 up
	END
  ! has_ipv6 || echo "addr add $(address6_of "$name")/64 dev $interface nodad"
}

# Prints nothing if the kernel can make bridges and veth pairs, otherwise the error. Runs in the head's network.
network_obstacle() {
  ip link add probe0 type bridge 2>&1 && ip link add probe1 type veth peer name probe2 2>&1 || return 0
  ip link delete probe0
  ip link delete probe1
}

make_networks() {
  local names
  readarray -t names < <(seq -f 'node%g' "$1")
  ip netns add inner
  ip -n inner link set lo up
  head_commands | ip -batch -
  connect_hosts "${names[@]}"
}

# Gives the hosts new networks, without any state of earlier connections.
connect_hosts() {
  local name
  for name in "$@"; do ip netns add "$name" && use_cubic "$name"; done
  for name in "$@"; do cable_commands "$name"; done | ip -batch -
  for name in "$@"; do host_commands "$name" | ip -n "$name" -batch -; done
  [[ " $* " != *" node1 "* ]] || connect_inner
}
# For all namespaces of this machine, and the only thing of it that is changed: it stays.
allow_cubic() {
  local list=/proc/sys/net/ipv4/tcp_allowed_congestion_control
  grep -qsw cubic "$list" || { echo "$(cat "$list") cubic" >"$list"; } 2>/dev/null || true
}
# The congestion control that clusters use, independent of this machine, because measurements are compared over it.
# BBR, which paces by its estimate of the network's rate, has two different speeds between namespaces, with any
# program.
# A namespace may use only what the machine allows (allow_cubic).
use_cubic() {
  nsenter --net="/run/netns/$1" sh -c 'echo cubic >/proc/sys/net/ipv4/tcp_congestion_control' 2>/dev/null || true
}
disconnect_host() {
  # The end of the namespace would delete the links as well, but later.
  printf "link delete $1-%s\n" eth ib | ip -batch -
  [ "$1" != node1 ] || ip -n node1 link delete inner0
  ip netns delete "$1"
}
connect_inner() {
  ip -n node1 link add inner0 type veth peer name eth0 netns inner
  ip -n node1 -batch - <<-END
	addr add 10.79.0.1/30 dev inner0
	link set inner0 up
	END
  ip -n inner -batch - <<-END
	addr add 10.79.0.2/30 dev eth0
	link set eth0 up
	END
}

set_links() { printf "link set $1-%s $2\n" eth ib | ip -batch -; }
links_are_up() { [ "$1" = inner ] || [[ $(ip -o link show "$1-eth") = *,UP* ]]; }

# drop_packets HOST PEER replace|delete: packets from HOST to PEER go to a hardware address that no host has; "delete"
# undoes this.
drop_packets() {
  local host=$1 peer=$2 action=$3 end='' interface
  interface=$(interface_of "$host")
  if [ "$action" = replace ]; then end="lladdr 02:00:00:00:00:f0 nud permanent"; fi
  {
    echo "neigh $action $(address_of "$peer") dev $interface $end"
    ! has_ipv6 || echo "neigh $action $(address6_of "$peer") dev $interface $end"
    echo "neigh $action 10.78.0.$(number_of "$peer") dev ib0 $end"
  } | ip -n "$host" -batch -
}

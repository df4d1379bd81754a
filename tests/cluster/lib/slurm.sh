# A real Slurm on the hosts: slurmctld and munged on the head, slurmd on every host. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.
#
#   node1, node2, node5 and so on   8 cores each, according to slurm.conf
#   node3, node4                    64 cores with two threads, 8 GPUs of type mi250, as LUMI-G's nodes; partition gpu.
#                                   Two sockets, because Slurm 24 allows no GPU for a part of a socket.
#
# Slurm does not check the hardware, so jobs are placed as on such nodes, but not bound. All of its files are in
# /etc/slurm, which hosts and head share.

readonly kSlurm=/etc/slurm kSlurmTools="slurmctld slurmd srun salloc sbatch munged"

has_slurm() { [ -e "$kSlurm/slurm.conf" ]; }

# Prints the tool that is missing; nothing if all are installed.
slurm_obstacle() {
  local tool
  for tool in $kSlurmTools; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed (scripts/setup)"; return; }
  done
}

# slurm_nodes NUMBER...: a node list of Slurm, "node[1,2,5,6]".
slurm_nodes() { printf 'node[%s]' "$(IFS=,; echo "$*")"; }

write_slurm_conf() {
  local size=$1 plain=() number
  for number in $(seq "$size"); do
    [ "$number" -eq 3 ] || [ "$number" -eq 4 ] || plain+=("$number")
  done
  cat >"$kSlurm/slurm.conf" <<-END
	ClusterName=ddl
	SlurmctldHost=head($(address_of head))
	CommunicationParameters=NoCtldInAddrAny
	SlurmUser=root
	AuthType=auth/munge
	CredType=cred/munge
	AuthInfo=socket=$kSlurm/munge/socket
	StateSaveLocation=$kSlurm/state
	SlurmdSpoolDir=$kSlurm/spool-%n
	SlurmctldPidFile=/run/slurmctld.pid
	SlurmdPidFile=/run/slurmd.pid
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	JobAcctGatherType=jobacct_gather/none
	MpiDefault=none
	SelectType=select/cons_tres
	SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
	SelectTypeParameters=CR_Core_Memory
	SlurmdParameters=config_overrides
	PropagateResourceLimits=NONE
	ReturnToService=2
	SlurmdTimeout=10
	KillWait=5
	InactiveLimit=0
	GresTypes=gpu
	NodeName=$(slurm_nodes "${plain[@]}") Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=16000
	END
  if [ "$size" -ge 4 ]; then
    cat >>"$kSlurm/slurm.conf" <<-END
	NodeName=node[3-4] Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=480000 Gres=gpu:mi250:8 Features=gpu
	PartitionName=gpu Nodes=node[3-4] MaxTime=60 State=UP
	PartitionName=accel Nodes=node[3-4] MaxTime=60 State=UP
	PartitionName=booster Nodes=node[3-4] MaxTime=60 State=UP
	PartitionName=standard-g Nodes=node[3-4] MaxTime=60 State=UP
	END
    cat >"$kSlurm/gres.conf" <<-END
	NodeName=node[3-4] Name=gpu Type=mi250 File=$kSlurm/gpu[0-3] Cores=0-31
	NodeName=node[3-4] Name=gpu Type=mi250 File=$kSlurm/gpu[4-7] Cores=32-63
	END
  fi
  echo "PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP" >>"$kSlurm/slurm.conf"
}

# make_slurm SIZE: sets up everything except the daemons of the hosts.
make_slurm() {
  local number
  rm -rf "$kSlurm"
  mkdir -p "$kSlurm/state" "$kSlurm/munge"
  for number in 0 1 2 3 4 5 6 7; do
    # The null device, in place of a GPU: Slurm needs a device file for each GPU.
    mknod -m 666 "$kSlurm/gpu$number" c 1 3
  done
  for number in $(seq "$1"); do mkdir "$kSlurm/spool-node$number"; done
  write_slurm_conf "$1"
  dd if=/dev/urandom of="$kSlurm/munge/key" bs=64 count=1 status=none
  chmod 400 "$kSlurm/munge/key"
  chown -R munge: "$kSlurm/munge"
  slurm_daemon munged setpriv --reuid=munge --regid=munge --clear-groups -- munged --foreground \
    --key-file="$kSlurm/munge/key" --socket="$kSlurm/munge/socket" --pid-file="$kSlurm/munge/pid" \
    --log-file="$kSlurm/munge/log" --seed-file="$kSlurm/munge/seed"
  until_true "munged does not answer" munge --socket="$kSlurm/munge/socket" --no-input
  slurm_daemon slurmctld slurmctld -D -c
  until_true "slurmctld does not answer" scontrol ping
}

# slurm_daemon NAME COMMAND...: starts it in a new session, which ends with the head.
slurm_daemon() {
  local name=$1
  shift
  setsid "$@" </dev/null >>"$kInside/log/$name" 2>&1 &
}

# until_true MESSAGE COMMAND...: repeats the command for up to 45 s until it succeeds.
until_true() {
  local message=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    [ $((tries += 1)) -le 900 ] ||
      die "$message: $(tail -n 3 "$kInside"/log/slurm* "$kInside"/log/munged 2>/dev/null)"
    sleep 0.05
  done
}

# start_slurmd NAME...: returns when every one is idle.
start_slurmd() {
  local name pid
  for name in "$@"; do
    [ "$name" != inner ] || continue
    pid=$(host_process "$name")
    slurm_daemon "slurmd-$name" \
      nsenter --target "$pid" --mount --uts --ipc --net --pid --root --wd -- slurmd -D -N "$name"
  done
  for name in "$@"; do
    [ "$name" != inner ] || continue
    until_true "slurmd on $name does not accept jobs" is_idle "$name"
  done
}
is_idle() { [ "$(sinfo --noheader --nodes "$1" --format %T | sort -u)" = idle ]; }

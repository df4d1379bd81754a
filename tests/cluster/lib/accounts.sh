# Logins, keys and the configuration of ssh. Sourced by tests/cluster/cluster.
# shellcheck shell=bash disable=SC2154  # Variables are the script's or each other's.

readonly kLogins="plain other noisy flood cshell hang late nologin denied" kFirstUid=20000 kSshd=/etc/ddl-cluster

root_home() { getent passwd root | cut -d: -f6; }
home_of() { getent passwd "$1" | cut -d: -f6; }

shell_of() {
  case $1 in
    cshell) command -v csh || command -v tcsh || echo /bin/false ;;
    nologin) command -v nologin ;;
    *) command -v bash ;;
  esac
}

make_accounts() {
  local login uid=$kFirstUid home
  getent passwd sshd >/dev/null || echo "sshd:x:19999:65534::/run/sshd:/usr/sbin/nologin" >>/etc/passwd
  for login in $kLogins; do
    home=/home/$login
    echo "$login:x:$uid:$uid::$home:$(shell_of "$login")" >>/etc/passwd
    echo "$login:x:$uid:" >>/etc/group
    # Not "!", which sshd regards as a locked account.
    echo "$login:*:19000::::::" >>/etc/shadow
    mkdir -m 700 "$home"
    chown "$uid:$uid" "$home"
    uid=$((uid + 1))
  done
  # The shared file system of the cluster.
  mkdir -m 1777 /home/shared
  # A root account without a password is often locked.
  sed -i 's/^root:[!]*:/root:*:/' /etc/shadow
  noise 32 >/home/noisy/.bashrc
  noise 1600 >/home/flood/.bashrc
  echo 'cat >/dev/null' >/home/hang/.bashrc # until its connection is closed
}

# Lines of 64 bytes on standard output, as some .bashrc files print.
noise() {
  # shellcheck disable=SC2016  # The other shell expands $line.
  printf 'for ((line = 0; line < %d; ++line)); do
  printf "%%-63s\\n" "Welcome to the cluster, this is line $line"
done\n' "$1"
}

make_keys() {
  local name login home line
  mkdir -p "$kSshd"
  for name in host_key other_host_key user_key root_key; do
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$kSshd/$name"
  done
  cat "$kSshd/user_key.pub" "$kSshd/root_key.pub" >"$kSshd/authorized_keys"
  for login in root $kLogins; do
    home=$(home_of "$login")
    mkdir -m 700 "$home/.ssh"
    cp "$kSshd/$([ "$login" = root ] && echo root || echo user)_key" "$home/.ssh/id_ed25519"
    chown -R "$login:" "$home/.ssh"
  done
  line=$(cut -d' ' -f1,2 "$kSshd/host_key.pub")
  echo "node*,head*,inner,changed,mute,refused,silent,10.77.0.*,!10.77.0.243,10.78.0.*,fd77::* $line" \
    >/etc/ssh/ssh_known_hosts
  # The ssh configuration of this machine must not apply to these hosts: the client's is that of Debian, and sshrc and
  # nologin are removed.
  rm -rf /etc/ssh/ssh_config.d /etc/ssh/sshrc /etc/nologin
  mkdir /etc/ssh/ssh_config.d
  cat >/etc/ssh/ssh_config <<-END
	Include /etc/ssh/ssh_config.d/*.conf
	Host *
	  SendEnv LANG LC_*
	  HashKnownHosts yes
	  GSSAPIAuthentication yes
	END
  printf 'Host inner\n  ProxyJump node1\n' >/etc/ssh/ssh_config.d/ddl-cluster.conf
  cat >"$kSshd/sshd_config" <<-END
	HostKey $kSshd/host_key
	AuthorizedKeysFile $kSshd/authorized_keys
	PermitRootLogin yes
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	UsePAM no
	UseDNS no
	StrictModes no
	MaxStartups 200
	MaxSessions 200
	PrintMotd no
	PidFile none
	$(parts_of_sshd)
	Match User denied
	  AuthorizedKeysFile none
	END
}

# Since OpenSSH 9.8, sshd executes other programs. Those of a package that is only unpacked are not where sshd looks.
parts_of_sshd() {
  local folder
  folder=$(dirname "$(find_sshd)")/../lib/openssh
  [ ! -x "$folder/sshd-session" ] || echo "SshdSessionPath $folder/sshd-session"
  [ ! -x "$folder/sshd-auth" ] || echo "SshdAuthPath $folder/sshd-auth"
}

find_sshd() { command -v sshd || command -v "$repository/build/openssh-server/usr/sbin/sshd"; }

# become LOGIN COMMAND...: runs it with the identity and home of the login; the rest of the environment is unchanged.
become() {
  local login=$1
  shift
  HOME=$(home_of "$login") USER=$login LOGNAME=$login SHELL=$(shell_of "$login")
  export HOME USER LOGNAME SHELL
  exec setpriv --reuid="$login" --regid="$login" --init-groups -- "$@"
}

#!/usr/bin/env bash
# One-node radosgw (Debian: radosgw ceph-mon ceph-osd ceph-common) on loopback, everything in memory.
# Usage: radosgw.sh <empty directory> <port> <two free ports for the monitor>. Ids of its processes are in <directory>/run/*.pid.
set -euo pipefail
dir=$(realpath "$1") port=$2 mon2=$3 mon1=$4
mkdir -p "$dir"/{mon,osd,log,run}
fsid=$(cat /proc/sys/kernel/random/uuid)
cat > "$dir/ceph.conf" << CONF
[global]
fsid = $fsid
mon host = [v2:127.0.0.1:$mon2,v1:127.0.0.1:$mon1]
mon initial members = a
keyring = $dir/keyring
run dir = $dir/run
log file = $dir/log/\$name.log
admin socket = $dir/run/\$name.asok
pid file = $dir/run/\$name.pid
osd objectstore = memstore
memstore device bytes = 2147483648
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
ms bind ipv6 = false
rgw dns name = localhost
[mon.a]
mon data = $dir/mon
mon addr = 127.0.0.1
[osd.0]
osd data = $dir/osd
public addr = 127.0.0.1
cluster addr = 127.0.0.1
CONF
export CEPH_CONF="$dir/ceph.conf"
ceph-authtool --create-keyring "$dir/keyring" --gen-key -n mon. --cap mon 'allow *'
ceph-authtool "$dir/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
ceph-authtool "$dir/keyring" --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'
monmaptool --create --clobber --addv a "[v2:127.0.0.1:$mon2,v1:127.0.0.1:$mon1]" --fsid "$fsid" "$dir/monmap"
ceph-mon -i a --mkfs --monmap "$dir/monmap" --keyring "$dir/keyring"
ceph-mon -i a
osd=$(cat /proc/sys/kernel/random/uuid)
timeout 600 ceph osd new "$osd"
timeout 600 ceph auth import -i "$dir/keyring"
ceph-osd -i 0 --mkfs --osd-uuid "$osd"
ceph-osd -i 0
timeout 600 radosgw -n client.admin --rgw-frontends="beast endpoint=127.0.0.1:$port tcp_nodelay=1"
for _ in $(seq 6000); do
  (echo > "/dev/tcp/127.0.0.1/$port") 2> /dev/null && break
  sleep 0.1
done
timeout 600 radosgw-admin user create --uid=t --display-name=t --access-key=tiltyard --secret-key=tiltyardsecret

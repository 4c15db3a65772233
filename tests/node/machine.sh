#!/bin/sh
# The first process of the test node's machine: run by machine.py in new network, mount and process namespaces.
# It sets them up, says "ready" and waits for the end of its input. Then the namespaces end, and all that is in them.
#   machine.sh <repository> <folder> <address>
set -eu
repository=$1 folder=$2 address=$3

# Mounts that pods make show up in all of the machine, never outside. The parts keep their files in the usual
# places, which are empty here.
mount --make-rshared /
mount -t tmpfs -o mode=755 machine /run
mount -t tmpfs -o mode=755,size=4g machine /var/lib
mkdir /run/node
ln -s "$repository/.cache/bin" /run/node/bin
ln -s "$repository/.cache/engine/lib" /run/node/engine
ln -s "$repository/.cache/node/model" /run/node/model
ln -s "$repository/tests/node/config" /run/node/config
ln -s "$folder" /run/node/files

# No link but loopback: the only neighbours are the pods, and there is no way out.
ip link set lo up
ip address add "$address/32" dev lo
ip route add 10.96.0.0/16 dev lo src "$address" # Services: kube-proxy gives a packet its true address after routing
echo 1 >/proc/sys/net/ipv4/ip_forward

# New connections of pods wait for the verdict of kube-network-policies. Its own nftables rules do the same, but
# not on kernels without CONFIG_NFT_QUEUE. As there, what the node's root sends passes: the kubelet's probes.
iptables -t mangle -A POSTROUTING -m owner --uid-owner 0 -j ACCEPT
iptables -t mangle -A POSTROUTING -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
iptables -t mangle -A POSTROUTING -s 10.244.0.0/16 -j NFQUEUE --queue-num 98
iptables -t mangle -A POSTROUTING -d 10.244.0.0/16 -j NFQUEUE --queue-num 98

echo ready
trap '' CHLD # the kernel reaps children whose parent ignores this signal, and `exec` keeps that
exec cat >/dev/null

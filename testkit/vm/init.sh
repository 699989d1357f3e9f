#!/bin/sh
# The VM's start, by busybox init. The kernel's command line names its address:
#   data=10.0.0.1/24
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /run/sshd
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
ln -sfn /proc/self/fd /dev/fd
hostname vm
for module in virtio_rng virtio_net 9pnet_virtio 9p; do modprobe "$module"; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /share
sysctl -qw net.ipv6.conf.default.accept_ra=0
ip link set lo up
ip address add 10.0.2.15/24 dev eth0   # the way of ssh
ip link set eth0 up
data=$(sed -n 's/.*data=\([^ ]*\).*/\1/p' /proc/cmdline)
ip address add "$data" dev eth1
ip link set eth1 mtu 4200 up           # an RDMA MTU of 4096 fits
# modprobe does not know that rxe asks for crc32 by name.
for module in crc32_generic rdma_rxe rdma_ucm; do modprobe "$module"; done
rdma link add rxe0 type rxe netdev eth1

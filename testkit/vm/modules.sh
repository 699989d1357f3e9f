#!/bin/sh
# Called by testkit/vm/modules.py:  modules.sh ROOT VERSION OUT
# Makes modules in the folder OUT, in a root that has the kernel's source and headers.
# irq_sim.c, which the kernel lacks too, is linked into gpio-sim.
set -eu
chroot "$1" sh -eu -s "$2" <<'BUILD'
mkdir /tmp/modules
cd /tmp/modules
tar -xf /usr/src/linux-source-*.tar.xz --strip-components=1 --wildcards \
    '*/drivers/gpio/gpio-sim.c' '*/drivers/gpio/gpiolib.h' '*/kernel/irq/irq_sim.c' \
    '*/drivers/pwm/pwm-pca9685.c'
mv drivers/gpio/gpio-sim.c sim.c
mv drivers/gpio/gpiolib.h drivers/pwm/pwm-pca9685.c .
# What modules cannot call, and what does the same.
sed 's/irq_to_desc(irqnum)/irq_data_to_desc(irq_get_irq_data(irqnum))/' \
    kernel/irq/irq_sim.c >irq_sim.c
# A fault to order: while the parameter "refuse" is set, the chip takes no write.
sed -i -e 's/^static int pca9685_pwm_apply(/static bool refuse;\nmodule_param(refuse, bool, 0644);\n\n&/' \
    -e 's/= __pca9685_pwm_apply(/= refuse ? -EIO : __pca9685_pwm_apply(/' pwm-pca9685.c
grep -q 'refuse ? -EIO' pwm-pca9685.c
rm -r drivers kernel
printf 'obj-m := gpio-sim.o pwm-pca9685.o\ngpio-sim-y := sim.o irq_sim.o\n' >Makefile
make -C "/usr/src/linux-headers-$1" M=/tmp/modules modules >&2
BUILD
cp "$1"/tmp/modules/*.ko "$3"

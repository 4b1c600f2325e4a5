/**
 * Devices by address: the devices that can be opened on this machine, and opening them.
 *
 * <p>In: the text form of an address ({@code sim:size=1GiB}), the transports it can name, and the
 * memory of an embedded one, for pinning it. Out: the inventory of the machine ({@code machine}),
 * work with an open device ({@code transfer}, {@code demo}), and the controller itself ({@code
 * nvme.driver}).
 */
@NullMarked
package io.gpunvme.gpu.device;

import org.jspecify.annotations.NullMarked;

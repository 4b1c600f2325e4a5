/**
 * Devices by address: what can be opened on this machine, and opening it.
 *
 * <p>In: the text form of an address ({@code sim:size=1GiB}), the transports it can name, and the
 * memory of an embedded one, for who wants to pin it. Out: what is in this machine ({@code
 * machine}), what is done with an open device ({@code transfer}, {@code demo}), and the controller
 * itself ({@code nvme.driver}).
 */
@NullMarked
package io.gpunvme.gpu.device;

import org.jspecify.annotations.NullMarked;

/**
 * Devices by address: what can be opened on this machine, and opening it.
 *
 * <p>In: the text form of an address ({@code sim:size=1GiB}), the transports it can name, and a
 * read-only look at the NVMe functions on the PCI bus. Out: what is done with an open device
 * ({@code transfer}, {@code demo}), and the controller itself ({@code nvme.driver}).
 */
@NullMarked
package io.gpunvme.core.device;

import org.jspecify.annotations.NullMarked;

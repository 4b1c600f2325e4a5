package io.gpunvme.nvme.pci;

import io.gpunvme.nvme.memory.BusMapper;

/**
 * A PCI function owned by this process. The driver cannot tell which transport is behind it.
 *
 * <p>Safe for all threads. After {@link #close} register reads return all ones, writes do nothing,
 * and {@link #map} throws.
 */
public interface PciFunction extends BusMapper, AutoCloseable {
  /** Its address, e.g. {@code sim:size=1GiB} or {@code vfio:0000:01:00.0}. */
  String name();

  /**
   * A memory BAR.
   *
   * @param index 0..5
   * @throws io.gpunvme.base.InvalidRequestException if the function has no such BAR
   */
  Bar bar(int index);

  /** The configuration space. */
  ConfigSpace config();

  /**
   * The NUMA node that its memory and the threads that serve it are placed on; {@link
   * NumaHome#NONE} of what is no device of this machine.
   */
  default NumaHome home() {
    return NumaHome.NONE;
  }

  /** The width of bus addresses that the controller accepts, in bits, e.g. 48 or 64. */
  int addressBits();

  /**
   * Whether its doorbells are memory that a process polls, not registers of a device: then a writer
   * maps them as memory.
   */
  default boolean polled() {
    return false;
  }

  /** The poller of the doorbells, which must be told of each store; a device needs no poller. */
  default DoorbellPoller poller() {
    return DoorbellPoller.TIRELESS;
  }

  /**
   * The driver has touched memory of the function, and there was none (SIGBUS).
   *
   * @return whether that can be: whoever plays the function has taken its memory away. From now on
   *     registers read all ones. If not, the fault has another cause
   */
  default boolean memoryGone() {
    return false;
  }

  /**
   * Stops all DMA by the function until bus mastering is turned on again.
   *
   * @return whether that is certain; if not, {@link #inDoubt} says until when it is not
   */
  default boolean stopDma() {
    // Without bus mastering a function does no DMA, whatever state it is in.
    ConfigSpace config = config();
    int command = config.read(ConfigSpace.COMMAND, 2);
    config.write(ConfigSpace.COMMAND, 2, command & ~ConfigSpace.COMMAND_BUS_MASTER);
    return true;
  }

  /** Function-level reset: everything volatile in the device returns to its power-on state. */
  void reset();

  /** Gives the function back and unmaps everything still mapped. Idempotent. */
  @Override
  void close();
}

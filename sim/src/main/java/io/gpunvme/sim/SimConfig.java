package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.spec.Vs;
import java.util.List;

/**
 * The configuration of an embedded controller. Immutable.
 *
 * @param namespaces NSID 1, 2, … in order
 * @param maxNamespaces NN: the highest valid NSID, ≥ the number of namespaces, ≤ 1024; the ones
 *     above are inactive
 * @param maxTransfer MDTS in bytes: a power of two from 8192 on, or 0 for no limit
 * @param mqes CAP.MQES: largest queue size, 0-based, 1..65535
 * @param ioQueues how many I/O submission queues and as many completion queues, 1..1024
 * @param vectors MSI-X vectors, 1..2048
 * @param dstrd CAP.DSTRD: doorbells are {@code 4 << dstrd} bytes apart, 0..15
 * @param to CAP.TO: worst time to become ready, in 500 ms units, 1..255
 * @param mpsMax CAP.MPSMAX: largest memory page is {@code 4096 << mpsMax} bytes, 0..15
 * @param version VS
 * @param readyNanos time from CC.EN changing to CSTS.RDY changing, ns
 * @param shutdownNanos time from CC.SHN to CSTS.SHST complete, ns
 * @param latencyNanos time from fetching an I/O command to executing it, ns; commands overlap
 * @param workers threads; 0: {@code SimulatedController.poll()} does the work. A worker without
 *     work for 0.1 ms sleeps between polls, first for 2 µs, after 16 ms for 0.25 ms, after 1 s for
 *     1 ms; the first command may wait that long
 * @param outOfOrder commands of equal latency complete in a shuffled order
 * @param strict refused are reserved fields that are not zero (Invalid Field in Command), Error
 *     Recovery without a namespace, and interrupt vectors other than 0 while MSI-X is off
 * @param volatileWriteCache VWC present and (until the host turns it off) enabled
 * @param sgl SGLs are supported for I/O commands
 * @param dbbuf Doorbell Buffer Config (shadow doorbells) is supported
 * @param contiguousQueues CAP.CQR: queues must be physically contiguous
 * @param subsystemReset CAP.NSSRS: the NSSR register works
 * @param namespaceManagement Namespace Management and Attachment are supported
 * @param keepAlive Keep Alive and its timer are supported
 * @param cmbBytes size of the controller memory buffer, a multiple of 4096; 0: none
 * @param hmbPreferred HMPRE: preferred host memory buffer, in 4 KiB units; 0: none wanted
 * @param hmbMinimum HMMIN: least useful host memory buffer, in 4 KiB units
 * @param addressBits width of a bus address, 32..64
 * @param aerl AERL: Asynchronous Event Requests held, 0-based, 0..255
 * @param acl ACL: Aborts outstanding, 0-based, 0..255
 * @param elpe ELPE: error log entries, 0-based, 0..255
 * @param serial SN: ASCII, at most 20 characters
 * @param model MN: ASCII, at most 40 characters
 * @param firmware FR: ASCII, at most 8 characters
 * @param faults rules to start with
 * @param seed of every random decision: order, faults, bus addresses
 */
public record SimConfig(
    List<NamespaceConfig> namespaces,
    int maxNamespaces,
    long maxTransfer,
    int mqes,
    int ioQueues,
    int vectors,
    int dstrd,
    int to,
    int mpsMax,
    Vs version,
    long readyNanos,
    long shutdownNanos,
    long latencyNanos,
    int workers,
    boolean outOfOrder,
    boolean strict,
    boolean volatileWriteCache,
    boolean sgl,
    boolean dbbuf,
    boolean contiguousQueues,
    boolean subsystemReset,
    boolean namespaceManagement,
    boolean keepAlive,
    long cmbBytes,
    int hmbPreferred,
    int hmbMinimum,
    int addressBits,
    int aerl,
    int acl,
    int elpe,
    String serial,
    String model,
    String firmware,
    List<FaultRule> faults,
    long seed) {
  /** The largest NN, so that one active namespace list always suffices. */
  public static final int MAX_NAMESPACES = 1024;

  /** Bytes per page at CAP.MPSMIN, which is always 0. */
  public static final int PAGE = 4096;

  /** Checks every value against its range. */
  public SimConfig {
    namespaces = List.copyOf(namespaces);
    faults = List.copyOf(faults);
    range("nn", maxNamespaces, Math.max(1, namespaces.size()), MAX_NAMESPACES);
    if (maxTransfer != 0
        && (Long.bitCount(maxTransfer) != 1 || maxTransfer < 2 * PAGE || maxTransfer > 1L << 40)) {
      throw new InvalidRequestException(
          "mdts=" + maxTransfer + " is not 0 or a power of two from 8192 bytes on");
    }
    range("mqes", mqes, 1, 65535);
    range("queues", ioQueues, 1, 1024);
    range("vectors", vectors, 1, 2048);
    range("dstrd", dstrd, 0, 15);
    range("to", to, 1, 255);
    range("mpsmax", mpsMax, 0, 15);
    range("ready", readyNanos, 0, Long.MAX_VALUE >> 1);
    range("shutdown", shutdownNanos, 0, Long.MAX_VALUE >> 1);
    range("latency", latencyNanos, 0, Long.MAX_VALUE >> 1);
    range("workers", workers, 0, 64);
    range("cmb", cmbBytes, 0, 1L << 30);
    if (cmbBytes % PAGE != 0) {
      throw new InvalidRequestException("cmb=" + cmbBytes + " is not a multiple of 4096");
    }
    range("hmpre", hmbPreferred, 0, 1 << 20);
    range("hmmin", hmbMinimum, 0, hmbPreferred);
    range("addressbits", addressBits, 32, 64);
    range("aerl", aerl, 0, 255);
    range("acl", acl, 0, 255);
    range("elpe", elpe, 0, 255);
    ascii("serial", serial, 20);
    ascii("model", model, 40);
    ascii("firmware", firmware, 8);
  }

  /** One 64 MiB namespace of 512-byte blocks in memory and the defaults of the project's brief. */
  public static SimConfig defaults() {
    return builder().build();
  }

  /**
   * Reads {@code key=value} pairs separated by commas; see {@link SimConfigParser}.
   *
   * @throws InvalidRequestException naming the key that is wrong
   */
  public static SimConfig parse(String text) {
    return SimConfigParser.parse(text).build();
  }

  /** A builder with the defaults. */
  public static SimConfigBuilder builder() {
    return new SimConfigBuilder();
  }

  /** MDTS as Identify Controller reports it: a power of two of 4 KiB pages, 0 for no limit. */
  public int mdts() {
    return maxTransfer == 0 ? 0 : Long.numberOfTrailingZeros(maxTransfer / PAGE);
  }

  private static void range(String key, long value, long low, long high) {
    if (value < low || value > high) {
      throw new InvalidRequestException(key + "=" + value + " is outside " + low + ".." + high);
    }
  }

  private static void ascii(String key, String value, int limit) {
    boolean printable = value.chars().allMatch(c -> c >= ' ' && c < 127);
    if (value.isEmpty() || value.length() > limit || !printable) {
      throw new InvalidRequestException(
          key + "=" + value + " is not 1 to " + limit + " printable ASCII characters");
    }
  }
}

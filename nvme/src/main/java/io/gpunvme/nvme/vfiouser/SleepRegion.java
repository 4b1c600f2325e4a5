package io.gpunvme.nvme.vfiouser;

/**
 * An extension of ours: how a server whose doorbells are quiet can sleep until the client wakes it.
 *
 * <p>Both ends name the capability {@link #CAPABILITY} in VERSION. The device then has one more
 * region, one page of memory that both map:
 *
 * <ul>
 *   <li>{@link #ASLEEP}, which the server waits at (futex(2)): 0, or another number for each of its
 *       sleeps. Whoever has stored to a doorbell reads it after a full fence; who finds another
 *       number than 0 and can exchange it for 0 wakes the server.
 *   <li>{@link #SILENT}, written by the client: how many initiators store to doorbells without
 *       looking, for example kernels of a GPU. It begins as 1; while it is not 0 the server does
 *       not sleep but for short times.
 * </ul>
 */
public final class SleepRegion {
  /** True in the capabilities of who knows the region. */
  public static final String CAPABILITY = "gpunvme_doorbell_sleep";

  /** Behind VFIO's regions of a PCI function. */
  public static final int INDEX = Protocol.REGIONS;

  public static final int BYTES = 4096;

  /** 4 bytes. */
  public static final int ASLEEP = 0;

  /** 4 bytes. */
  public static final int SILENT = 64;

  private SleepRegion() {}
}

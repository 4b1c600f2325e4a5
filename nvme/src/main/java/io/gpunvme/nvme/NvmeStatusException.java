package io.gpunvme.nvme;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Status;

/** A controller completed a command with a status other than success. */
public final class NvmeStatusException extends NvmeException {
  private static final long serialVersionUID = 1;

  private final int status;
  private final int opcode;
  private final int qid;
  private final int cid;
  private final int nsid;
  private final long slba;

  /**
   * @param status the 15-bit Status Field (see {@link Status})
   * @param opcode the command's opcode; an admin opcode when {@code qid} is 0
   * @param qid the submission queue the command was on
   * @param cid the command identifier, 0..65535
   * @param nsid the namespace, 0 when the command names none
   * @param slba the first logical block, or -1 when the command addresses none
   */
  public NvmeStatusException(int status, int opcode, int qid, int cid, int nsid, long slba) {
    super(
        (qid == 0 ? AdminOpcode.name(opcode) : IoOpcode.name(opcode))
            + " failed: "
            + Status.describe(status)
            + " (queue "
            + qid
            + ", CID "
            + cid
            + (nsid == 0 ? "" : ", namespace " + Integer.toUnsignedString(nsid))
            + (slba < 0 ? "" : ", LBA " + slba)
            + ")"
            + (Status.dnr(status) ? "" : "; DNR is clear"));
    this.status = status;
    this.opcode = opcode;
    this.qid = qid;
    this.cid = cid;
    this.nsid = nsid;
    this.slba = slba;
  }

  /**
   * The same failure with another message; the caller sets the cause.
   *
   * @param message the message of {@code first} and more
   */
  public NvmeStatusException(String message, NvmeStatusException first) {
    super(message);
    this.status = first.status;
    this.opcode = first.opcode;
    this.qid = first.qid;
    this.cid = first.cid;
    this.nsid = first.nsid;
    this.slba = first.slba;
  }

  /** The 15-bit Status Field: SC, SCT, CRD, M and DNR. */
  public int status() {
    return status;
  }

  /** The opcode of the command that failed. */
  public int opcode() {
    return opcode;
  }

  /** The submission queue; 0 is the admin queue. */
  public int qid() {
    return qid;
  }

  /** The command identifier. */
  public int cid() {
    return cid;
  }

  /** The namespace identifier, 0 when the command names none. */
  public int nsid() {
    return nsid;
  }

  /** The first logical block of the command, or -1. */
  public long slba() {
    return slba;
  }

  /** Whether repeating the same command may succeed (the Do Not Retry bit is clear). */
  public boolean retryable() {
    return !Status.dnr(status);
  }
}

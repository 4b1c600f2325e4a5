package io.gpunvme.cuda.cufile;

/**
 * The end of one entry of a batch.
 *
 * @param cookie of its request
 * @param status how it ended
 * @param result bytes moved if it is complete; else cuFile's number, negative if it is an error
 */
public record CuFileCompletion(long cookie, Status status, long result) {
  /** How an entry ended. */
  public enum Status {
    /** It was ill-formed or could not be started. */
    INVALID(4),
    /** Its batch was cancelled before it began. */
    CANCELED(8),
    /** It worked. */
    COMPLETE(0x10),
    /** It took too long. */
    TIMEOUT(0x20),
    /** It failed. */
    FAILED(0x40);

    private final int number;

    Status(int number) {
      this.number = number;
    }

    /** Its number in the header. */
    int number() {
      return number;
    }

    /** The status with this number; what is not known counts as failed. */
    static Status of(int number) {
      for (Status status : values()) {
        if (status.number == number) {
          return status;
        }
      }
      return FAILED;
    }
  }
}

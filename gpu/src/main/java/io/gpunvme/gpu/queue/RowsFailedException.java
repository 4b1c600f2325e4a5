package io.gpunvme.gpu.queue;

/**
 * Rows of a {@link DeviceRows} were not read or written by calls that are over: {@link #status} and
 * {@link #id} are those of the first, {@link #rows} how many there were.
 */
public final class RowsFailedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int status;
  private final long id;
  private final int rows;

  RowsFailedException(int status, long id, int rows, long there) {
    super(message(status, id, rows, there));
    this.status = status;
    this.id = id;
    this.rows = rows;
  }

  private static String message(int status, long id, int rows, long there) {
    String what = "row %d (of %d that failed): ".formatted(id, rows);
    if (status == DeviceStatus.ARGUMENT) {
      return what + "there are rows 0 to %d".formatted(there - 1);
    }
    return what
        + DeviceStatus.describe(status)
        + "; the storage's errors() have the blocks; recover() it if a command timed out";
  }

  /** As in {@link DeviceStatus}; {@link DeviceStatus#ARGUMENT}: there is no such row. */
  public int status() {
    return status;
  }

  /** Of the first row that failed. */
  public long id() {
    return id;
  }

  /** How many failed, or parts of rows, counted as often as they were asked for. */
  public int rows() {
    return rows;
  }
}

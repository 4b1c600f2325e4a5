package io.gpunvme.storage;

/** The storage is closed, or is being closed. */
public final class StorageClosedException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  StorageClosedException(String name) {
    super(name + " is closed");
  }
}

package io.gpunvme.storage;

/** A storage is closed, or being closed. */
public final class StorageClosedException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  StorageClosedException(String name) {
    super(name + " is closed");
  }
}

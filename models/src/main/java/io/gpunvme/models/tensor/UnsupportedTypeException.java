package io.gpunvme.models.tensor;

/** There is no way from elements of one type to those of another. The message names both. */
public final class UnsupportedTypeException extends RuntimeException {
  private static final long serialVersionUID = 1;

  UnsupportedTypeException(String message) {
    super(message);
  }
}

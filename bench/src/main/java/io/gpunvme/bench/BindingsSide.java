package io.gpunvme.bench;

import java.util.Locale;

/** From where the same is called, in the order of their turns. */
enum BindingsSide {
  JAVA,
  C,
  PYTHON;

  static final String CALL = "bindings.call.";
  static final String READ = "bindings.read.";

  /** Of the result of one call. */
  String call() {
    return CALL + this;
  }

  /** Of the result of long reads. */
  String read() {
    return READ + this;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}

package io.gpunvme.base;

/** The version of this build. */
public final class Version {
  /** Version as released, with {@code -SNAPSHOT} between releases. */
  public static final String VERSION = "0.1.0-SNAPSHOT";

  private Version() {}
}

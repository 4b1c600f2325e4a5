package io.gpunvme.tools.fleet;

import java.util.Locale;

/** Which GPUs have what of a model. */
public enum Placement {
  /** Each machine has it once, an even part on each of its GPUs. */
  MACHINE,
  /** Each GPU has all of it; a machine reads it once and copies it between its GPUs. */
  GPU,
  /** All GPUs of all machines together have it once, an even part each. */
  SHARDED,
  /** Each GPU has all of it and reads all of it, as programs do that do not share. */
  ALONE;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}

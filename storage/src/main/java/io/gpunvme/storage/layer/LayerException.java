package io.gpunvme.storage.layer;

import org.jspecify.annotations.Nullable;

/** A layer could not be loaded: which one, why, and what to do next. */
public final class LayerException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The reason. */
  public enum Reason {
    /** Reading failed; the cause says how. Later layers may still be read. */
    READ,
    /** {@link LayerLoader#cancel} was called before. */
    CANCELLED,
    /** {@link LayerLoader#close} was called before. */
    CLOSED,
    /** A stream waited longer than {@link LayerOptions#patience}. */
    STALLED
  }

  private final transient Layer layer;
  private final Reason reason;

  LayerException(Layer layer, Reason reason, String what, @Nullable Throwable cause) {
    super(layer + ": " + what, cause);
    this.layer = layer;
    this.reason = reason;
  }

  /** The layer. */
  public Layer layer() {
    return layer;
  }

  /** The reason. */
  public Reason reason() {
    return reason;
  }
}

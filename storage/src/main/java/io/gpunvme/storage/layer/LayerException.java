package io.gpunvme.storage.layer;

import org.jspecify.annotations.Nullable;

/** A layer that is not there: which, why, and what to do next. */
public final class LayerException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Why it is not there. */
  public enum Reason {
    /** Reading failed; the cause says how. The next layer may well be read. */
    READ,
    /** {@link LayerLoader#cancel} came first. */
    CANCELLED,
    /** {@link LayerLoader#close} came first. */
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

  /** Why it is not there. */
  public Reason reason() {
    return reason;
  }
}

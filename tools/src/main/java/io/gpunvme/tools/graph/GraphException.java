package io.gpunvme.tools.graph;

/** A graph cannot be made or used: which one, the problem, and what to do next. */
public final class GraphException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The kind of problem. */
  public enum Kind {
    /** What should be an image is none. */
    NO_IMAGE,
    /** An image contradicts itself. */
    DAMAGED,
    /** What a graph was to be made of is not what it should be. */
    INPUT,
    /** It does not fit into memory, or into the numbers of an image. */
    TOO_LARGE,
    /** A result is not the CPU's. */
    WRONG_RESULT
  }

  private final Kind kind;

  /**
   * @param of the image or file
   */
  GraphException(Kind kind, String of, String what) {
    super(of + ": " + what);
    this.kind = kind;
  }

  /** The kind of problem. */
  public Kind kind() {
    return kind;
  }
}

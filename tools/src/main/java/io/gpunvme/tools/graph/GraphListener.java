package io.gpunvme.tools.graph;

/** Is told how far something is. Safe for all threads. */
public interface GraphListener {
  /** Wants to know nothing. */
  GraphListener NONE =
      new GraphListener() {
        @Override
        public void begins(String what, long bytes) {}

        @Override
        public void moved(long bytes) {}
      };

  /** Something begins; what was before is over. */
  void begins(String what, long bytes);

  /** So many bytes more are done. */
  void moved(long bytes);
}

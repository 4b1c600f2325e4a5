package io.gpunvme.gpu.model;

import java.util.Arrays;
import java.util.BitSet;

/** Which state leads to which, by number; built in the order of the numbers. */
final class Graph {
  private int[] start = new int[1 << 12];
  private int[] parent = new int[1 << 12];
  private int[] targets = new int[1 << 14];
  private int nodes;
  private int edges;

  /** The following edges leave this node; nodes come in the order 0, 1, 2... */
  void open(int node) {
    nodes = node + 1;
    start = room(start, nodes + 1);
    start[node] = edges;
  }

  void edge(int target) {
    targets = room(targets, edges + 1);
    targets[edges++] = target;
    start[nodes] = edges;
  }

  /** The node by which this one was found, -1 for the first. */
  void foundBy(int node, int by) {
    parent = room(parent, node + 1);
    parent[node] = by;
  }

  int parent(int node) {
    return parent[node];
  }

  int edges() {
    return edges;
  }

  /** The nodes from which some goal can be reached, the goals included. */
  BitSet leadingTo(BitSet goals) {
    start[nodes] = edges;
    int[] from = new int[nodes + 2];
    for (int e = 0; e < edges; e++) {
      from[targets[e] + 2]++;
    }
    for (int n = 2; n < from.length; n++) {
      from[n] += from[n - 1];
    }
    int[] sources = new int[edges];
    for (int n = 0; n < nodes; n++) {
      for (int e = start[n]; e < start[n + 1]; e++) {
        sources[from[targets[e] + 1]++] = n;
      }
    }
    BitSet reached = (BitSet) goals.clone();
    int[] queue = new int[nodes];
    int end = 0;
    for (int n = goals.nextSetBit(0); n >= 0; n = goals.nextSetBit(n + 1)) {
      queue[end++] = n;
    }
    for (int i = 0; i < end; i++) {
      for (int e = from[queue[i]]; e < from[queue[i] + 1]; e++) {
        if (!reached.get(sources[e])) {
          reached.set(sources[e]);
          queue[end++] = sources[e];
        }
      }
    }
    return reached;
  }

  /**
   * Of a set of nodes that can be reached from this one and that nothing leads out of, the lowest
   * number.
   */
  int trap(int node) {
    int[] reached = reachableFrom(node);
    while (true) {
      int[] further = reachableFrom(reached[reached.length - 1]);
      if (further.length == reached.length) {
        return Arrays.stream(reached).min().orElseThrow();
      }
      reached = further;
    }
  }

  /** The nodes that can be reached from this one, itself included, the nearest first. */
  private int[] reachableFrom(int node) {
    BitSet seen = new BitSet();
    seen.set(node);
    int[] order = {node};
    int end = 1;
    for (int i = 0; i < end; i++) {
      for (int e = start[order[i]]; e < start[order[i] + 1]; e++) {
        if (!seen.get(targets[e])) {
          seen.set(targets[e]);
          order = room(order, end + 1);
          order[end++] = targets[e];
        }
      }
    }
    return Arrays.copyOf(order, end);
  }

  private static int[] room(int[] array, int needed) {
    return needed <= array.length
        ? array
        : Arrays.copyOf(array, Math.max(needed, array.length * 2));
  }
}

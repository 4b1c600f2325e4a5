package io.gpunvme.capi;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What uses something that C has a handle of, and is closed before it. Safe for all threads. */
final class Users {
  private final String owner;
  private final Set<AutoCloseable> users = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /**
   * @param owner for messages, such as {@code the storage}
   */
  Users(String owner) {
    this.owner = owner;
  }

  /**
   * Closed with the owner, if not before.
   *
   * @throws ClosedHandleException if the owner is closed; it may close the user meanwhile
   */
  void add(AutoCloseable user) {
    users.add(user);
    // Closing marks itself before it looks for users, so one of the two sees the other.
    requireOpen();
  }

  void remove(AutoCloseable user) {
    users.remove(user);
  }

  boolean closed() {
    return closed;
  }

  void requireOpen() {
    if (closed) {
      throw new ClosedHandleException(owner + " was closed");
    }
  }

  /** From now on the owner is closed; who is to be closed before it. */
  List<AutoCloseable> end() {
    closed = true;
    List<AutoCloseable> all = new ArrayList<>(users);
    users.clear();
    return all;
  }
}

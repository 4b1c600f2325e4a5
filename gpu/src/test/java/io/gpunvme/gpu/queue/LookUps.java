package io.gpunvme.gpu.queue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What {@link UserKernel}'s {@code look_up} is asked, and what it says. */
final class LookUps {
  /** Of {@code found}: there is no such file. */
  static final int NONE = -1;

  private static final int NUMBER = -1;
  private static final int ENDED = -2;
  private static final long BYTES = 8;
  private static final long FILE = 12;
  private static final long OFFSET = 16;
  private static final long LENGTH = 24;
  private static final long TO = 32;
  private static final long SIZE = 40;
  private static final long STATUS = 48;

  private final List<Ask> asked = new ArrayList<>();
  private long textBytes;

  private record Ask(
      byte[] path, int bytes, int number, long text, long offset, long length, long to) {}

  /**
   * Looks for a path.
   *
   * @param ended whether a byte 0 ends it, as against a number of bytes
   * @param offset of the range that is read if it is there
   * @param to in buffer 0
   * @return the number of this question
   */
  int path(String path, boolean ended, long offset, long length, long to) {
    byte[] text = path.getBytes(StandardCharsets.UTF_8);
    return add(text, ended ? ENDED : text.length, NONE, offset, length, to);
  }

  /** Looks for a path that is said to be longer than the text. */
  int tooLong(int bytes) {
    return add(new byte[] {'a'}, bytes, NONE, 0, 0, 0);
  }

  /** Asks for the file of a number. */
  int number(int number) {
    return add(new byte[DirectoryFiles.MOST_PATH_BYTES], NUMBER, number, 0, 0, 0);
  }

  private int add(byte[] text, int bytes, int number, long offset, long length, long to) {
    asked.add(new Ask(text, bytes, number, textBytes, offset, length, to));
    // Behind a path that has no end there is something else.
    textBytes += text.length + 1;
    return asked.size() - 1;
  }

  int count() {
    return asked.size();
  }

  /** The paths, as kernels find them. */
  MemorySegment text() {
    MemorySegment text = Arena.ofAuto().allocate(textBytes);
    for (Ask one : asked) {
      MemorySegment.copy(MemorySegment.ofArray(one.path), 0, text, one.text, one.path.length);
      byte end = (byte) (one.bytes == ENDED ? 0 : 'x');
      text.set(ValueLayout.JAVA_BYTE, one.text + one.path.length, end);
    }
    return text;
  }

  /** The questions. */
  MemorySegment structs() {
    MemorySegment all =
        Arena.ofAuto().allocate(asked.size() * UserKernel.LOOK_UP_BYTES, Long.BYTES);
    for (int i = 0; i < asked.size(); i++) {
      Ask one = asked.get(i);
      long at = i * UserKernel.LOOK_UP_BYTES;
      DeviceLayout.setLong(all, at, one.text);
      DeviceLayout.setInt(all, at + BYTES, one.bytes);
      DeviceLayout.setInt(all, at + FILE, one.number);
      DeviceLayout.setLong(all, at + OFFSET, one.offset);
      DeviceLayout.setLong(all, at + LENGTH, one.length);
      DeviceLayout.setLong(all, at + TO, one.to);
      DeviceLayout.setLong(all, at + SIZE, -1);
      DeviceLayout.setInt(all, at + STATUS, -1);
    }
    return all;
  }

  /**
   * What the kernel said.
   *
   * @param structs the questions, with answers
   * @param text with the paths of numbers
   */
  record Said(MemorySegment structs, MemorySegment text) {
    /** The number of the file; {@link #NONE} if there is none. */
    int found(int question) {
      return DeviceLayout.getInt(structs, question * UserKernel.LOOK_UP_BYTES + FILE);
    }

    int status(int question) {
      return DeviceLayout.getInt(structs, question * UserKernel.LOOK_UP_BYTES + STATUS);
    }

    /** Bytes in the file. */
    long size(int question) {
      return DeviceLayout.getLong(structs, question * UserKernel.LOOK_UP_BYTES + SIZE);
    }

    /** Of the file of a number. */
    String path(int question) {
      long at = question * UserKernel.LOOK_UP_BYTES;
      int bytes = DeviceLayout.getInt(structs, at + BYTES);
      byte[] path =
          text.asSlice(DeviceLayout.getLong(structs, at), bytes).toArray(ValueLayout.JAVA_BYTE);
      return new String(path, StandardCharsets.UTF_8);
    }
  }
}

package io.gpunvme.cuda.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.cuda.library.NativeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** The functions of NVML that are used. */
final class NvmlCalls {
  /** NVML_NVLINK_MAX_LINKS is 18 up to Hopper and 36 later; a GPU refuses those it has not. */
  static final int MOST_LINKS = 36;

  /** A link that the GPU has not got, or no NVLink at all. */
  private static final int INVALID_ARGUMENT = 2;

  private static final int NOT_SUPPORTED = 3;

  private static final int UNKNOWN_TYPE = 0xFF;

  // nvmlPciInfo_t: char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId,
  // pciSubSystemId; char busId[32].
  static final long PCI_INFO_BYTES = 68;
  static final long BUS_ID = 36;
  static final long BUS_ID_BYTES = 32;

  private static final long MAX_TEXT = 1024;

  private static final MethodHandle PLAIN = Downcall.status();
  private static final MethodHandle COUNT = Downcall.status(ADDRESS);
  private static final MethodHandle BY_INDEX = Downcall.status(JAVA_INT, ADDRESS);
  private static final MethodHandle OF_DEVICE = Downcall.status(JAVA_LONG, ADDRESS);
  private static final MethodHandle OF_LINK = Downcall.status(JAVA_LONG, JAVA_INT, ADDRESS);
  private static final MethodHandle ERROR_STRING =
      Downcall.of(FunctionDescriptor.of(ADDRESS, JAVA_INT));

  private final NativeFunction init;
  private final NativeFunction shutdown;
  private final NativeFunction count;
  private final NativeFunction device;
  private final NativeFunction pciInfo;
  private final NativeFunction state;
  private final NativeFunction version;
  private final NativeFunction remoteType;
  private final NativeFunction remotePciInfo;
  private final NativeFunction errorString;

  NvmlCalls(NativeLibrary library) {
    init = library.function("nvmlInit_v2");
    shutdown = library.function("nvmlShutdown");
    count = library.function("nvmlDeviceGetCount_v2");
    device = library.function("nvmlDeviceGetHandleByIndex_v2");
    pciInfo = library.function("nvmlDeviceGetPciInfo_v3");
    state = library.function("nvmlDeviceGetNvLinkState");
    version = library.function("nvmlDeviceGetNvLinkVersion");
    remoteType = library.function("nvmlDeviceGetNvLinkRemoteDeviceType");
    remotePciInfo = library.function("nvmlDeviceGetNvLinkRemotePciInfo_v2");
    errorString = library.function("nvmlErrorString");
  }

  /** Counted by NVML: each call wants a {@link #close}. */
  void open() {
    check(init, plain(init));
  }

  void close() {
    check(shutdown, plain(shutdown));
  }

  private static int plain(NativeFunction function) {
    try {
      return (int) PLAIN.invokeExact(function.address());
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  int count() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_INT);
      check(count, (int) COUNT.invokeExact(count.address(), result));
      return result.get(JAVA_INT, 0);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  long device(int index) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      check(device, (int) BY_INDEX.invokeExact(device.address(), index, result));
      return result.get(JAVA_LONG, 0);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  String address(long handle) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = arena.allocate(PCI_INFO_BYTES, Integer.BYTES);
      check(pciInfo, (int) OF_DEVICE.invokeExact(pciInfo.address(), handle, info));
      return busId(info);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** Whether a GPU has this link and it is up. */
  boolean active(long handle, int link) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_INT);
      int code = ofLink(state, handle, link, result);
      if (code == INVALID_ARGUMENT || code == NOT_SUPPORTED) {
        return false;
      }
      check(state, code);
      return result.get(JAVA_INT, 0) != 0;
    }
  }

  /** 0 if NVML does not say. */
  int version(long handle, int link) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_INT);
      return ofLink(version, handle, link, result) == 0 ? result.get(JAVA_INT, 0) : 0;
    }
  }

  /** NVML's number of what is at the other end. */
  int remoteType(long handle, int link) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_INT);
      return ofLink(remoteType, handle, link, result) == 0 ? result.get(JAVA_INT, 0) : UNKNOWN_TYPE;
    }
  }

  /** Empty if NVML does not say: a virtual machine sees no switches. */
  String remoteAddress(long handle, int link) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = arena.allocate(PCI_INFO_BYTES, Integer.BYTES);
      return ofLink(remotePciInfo, handle, link, info) == 0 ? busId(info) : "";
    }
  }

  private static int ofLink(NativeFunction function, long handle, int link, MemorySegment result) {
    try {
      return (int) OF_LINK.invokeExact(function.address(), handle, link, result);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** Up to its end, also where no zero byte ends it. */
  private static String busId(MemorySegment info) {
    byte[] bytes = info.asSlice(BUS_ID, BUS_ID_BYTES).toArray(JAVA_BYTE);
    int length = 0;
    while (length < bytes.length && bytes[length] != 0) {
      length++;
    }
    return new String(bytes, 0, length, ISO_8859_1);
  }

  private void check(NativeFunction function, int code) {
    if (code != 0) {
      throw new NvmlException(function.name(), code, errorText(code));
    }
  }

  @SuppressWarnings("restricted")
  private String errorText(int code) {
    try {
      MemorySegment text = (MemorySegment) ERROR_STRING.invokeExact(errorString.address(), code);
      return text.address() == 0 ? "error" : text.reinterpret(MAX_TEXT).getString(0, ISO_8859_1);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }
}

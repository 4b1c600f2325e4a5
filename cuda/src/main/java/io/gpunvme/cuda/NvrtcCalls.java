package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.cuda.library.NativeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Map;

/** The functions of NVRTC. A compilation that fails is a status, everything else an exception. */
final class NvrtcCalls {
  private static final MethodHandle VERSION = Downcall.status(ADDRESS, ADDRESS);
  private static final MethodHandle ERROR_STRING =
      Downcall.of(FunctionDescriptor.of(ADDRESS, JAVA_INT));
  private static final MethodHandle CREATE =
      Downcall.status(ADDRESS, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
  private static final MethodHandle DESTROY = Downcall.status(ADDRESS);
  private static final MethodHandle COMPILE = Downcall.status(JAVA_LONG, JAVA_INT, ADDRESS);
  private static final MethodHandle GET = Downcall.status(JAVA_LONG, ADDRESS);
  private static final long MAX_TEXT = 1024;

  private final NativeFunction version;
  private final NativeFunction errorString;
  private final NativeFunction create;
  private final NativeFunction destroy;
  private final NativeFunction compile;
  private final NativeFunction ptxSize;
  private final NativeFunction ptx;
  private final NativeFunction logSize;
  private final NativeFunction log;

  NvrtcCalls(NativeLibrary library) {
    version = library.function("nvrtcVersion");
    errorString = library.function("nvrtcGetErrorString");
    create = library.function("nvrtcCreateProgram");
    destroy = library.function("nvrtcDestroyProgram");
    compile = library.function("nvrtcCompileProgram");
    ptxSize = library.function("nvrtcGetPTXSize");
    ptx = library.function("nvrtcGetPTX");
    logSize = library.function("nvrtcGetProgramLogSize");
    log = library.function("nvrtcGetProgramLog");
  }

  CudaVersion version() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment major = arena.allocate(JAVA_INT);
      MemorySegment minor = arena.allocate(JAVA_INT);
      check(version, (int) VERSION.invokeExact(version.address(), major, minor));
      return new CudaVersion(major.get(JAVA_INT, 0), minor.get(JAVA_INT, 0));
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** A new program, to be destroyed. */
  long create(NvrtcSource source) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment program = arena.allocate(JAVA_LONG);
      MemorySegment text = arena.allocateFrom(source.text());
      MemorySegment name = arena.allocateFrom(source.name());
      List<Map.Entry<String, String>> headers = List.copyOf(source.headers().entrySet());
      MemorySegment texts = strings(arena, headers.stream().map(Map.Entry::getValue).toList());
      MemorySegment names = strings(arena, headers.stream().map(Map.Entry::getKey).toList());
      check(
          create,
          (int)
              CREATE.invokeExact(
                  create.address(), program, text, name, headers.size(), texts, names));
      return program.get(JAVA_LONG, 0);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  void destroy(long program) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocateFrom(JAVA_LONG, program);
      check(destroy, (int) DESTROY.invokeExact(destroy.address(), pointer));
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** The status: 0 if it compiled. */
  int compile(long program, List<String> options) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment texts = strings(arena, options);
      return (int) COMPILE.invokeExact(compile.address(), program, options.size(), texts);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  /** PTX with the zero byte at its end. */
  byte[] ptx(long program) {
    return bytes(ptxSize, ptx, program);
  }

  String log(long program) {
    byte[] text = bytes(logSize, log, program);
    return MemorySegment.ofArray(text).getString(0).strip();
  }

  private byte[] bytes(NativeFunction size, NativeFunction get, long program) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment length = arena.allocate(JAVA_LONG);
      check(size, (int) GET.invokeExact(size.address(), program, length));
      // One more, so that what is empty or not terminated still ends with a zero byte.
      MemorySegment text = arena.allocate(length.get(JAVA_LONG, 0) + 1);
      check(get, (int) GET.invokeExact(get.address(), program, text));
      return text.toArray(JAVA_BYTE);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  @SuppressWarnings("restricted")
  String errorText(int code) {
    try {
      MemorySegment text = (MemorySegment) ERROR_STRING.invokeExact(errorString.address(), code);
      return text.address() == 0 ? "NVRTC error " + code : text.reinterpret(MAX_TEXT).getString(0);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  private void check(NativeFunction function, int code) {
    if (code != 0) {
      throw new CudaCompileException(function.name() + ": " + errorText(code), "");
    }
  }

  /** An array of pointers to strings; null if there is none. */
  private static MemorySegment strings(Arena arena, List<String> texts) {
    if (texts.isEmpty()) {
      return MemorySegment.NULL;
    }
    MemorySegment pointers = arena.allocate(ADDRESS, texts.size());
    for (int i = 0; i < texts.size(); i++) {
      pointers.setAtIndex(ADDRESS, i, arena.allocateFrom(texts.get(i)));
    }
    return pointers;
  }
}

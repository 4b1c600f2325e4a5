package io.gpunvme.storage.injection;

import io.gpunvme.storage.injection.Injector.Kind;
import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassFile.ClassHierarchyResolverOption;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.Label;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.classfile.instruction.ReturnInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.net.URL;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Defines our classes anew, with a call of {@link Injector} at every instruction by which product
 * code asks the host for something. Product code has no hook of its own for that.
 */
final class InjectingLoader extends ClassLoader {
  private static final String OURS = "io.gpunvme.";

  /** The two sides of a scenario talk by these. */
  private static final List<String> SHARED =
      Stream.of(Attempt.class, InjectedClasses.class, Injector.class, Scenario.class)
          .map(Class::getName)
          .toList();

  /** The embedded SSD is the device, not the host. */
  private static final String DEVICE = OURS + "sim.";

  /** Copies own memory only, where no page is ever gone. */
  private static final String DRIVER = OURS + "nvme.";

  private static final String NATIVE = OURS + "ffi.Native";
  private static final String NATIVE_CALL = "errnoNegated";

  private static final String CUDA = OURS + "cuda.Driver";
  private static final String CUDA_CALL = "status";
  private static final ClassDesc CUDA_FUNCTION = ClassDesc.of(OURS + "cuda.library.NativeFunction");

  private static final String THREAD = "java/lang/Thread";
  private static final Set<String> EXECUTORS =
      Set.of(
          "java/util/concurrent/Executor",
          "java/util/concurrent/ExecutorService",
          "java/util/concurrent/ThreadPoolExecutor");
  private static final Set<String> ALLOCATORS =
      Set.of("java/lang/foreign/Arena", "java/lang/foreign/SegmentAllocator");
  private static final String SEGMENT = "java/lang/foreign/MemorySegment";
  private static final String RANGE = "io/gpunvme/nvme/memory/BusRange";

  private static final ClassDesc INJECTOR = ClassDesc.of(Injector.class.getName());
  private static final ClassDesc KIND = ClassDesc.of(Kind.class.getName());
  private static final MethodTypeDesc AT = MethodTypeDesc.of(ConstantDescs.CD_void, KIND);
  private static final CodeTransform ERRNO_CALL =
      new ForeignCall(
          code -> code.invokestatic(INJECTOR, "errno", type("()I")),
          code -> code.ineg().i2l().lreturn(),
          code -> code.invokestatic(INJECTOR, "result", type("(J)J")));

  /** The function is the method's first argument. */
  private static final CodeTransform STATUS_CALL =
      new ForeignCall(
          code ->
              code.aload(1)
                  .invokevirtual(CUDA_FUNCTION, "name", type("()Ljava/lang/String;"))
                  .invokestatic(INJECTOR, "cuda", type("(Ljava/lang/String;)I")),
          CodeBuilder::ireturn,
          code -> code.invokestatic(INJECTOR, "status", type("(I)I")));

  private final ClassLoader classPath = InjectingLoader.class.getClassLoader();
  private final ClassFile classFile =
      ClassFile.of(
          ClassHierarchyResolverOption.of(
              ClassHierarchyResolver.ofResourceParsing(classPath)
                  .orElse(ClassHierarchyResolver.defaultResolver())));

  InjectingLoader() {
    super(InjectingLoader.class.getClassLoader());
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith(OURS) || isShared(name)) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> known = findLoadedClass(name);
      return known == null ? define(name) : known;
    }
  }

  private static boolean isShared(String name) {
    return SHARED.stream().anyMatch(s -> name.equals(s) || name.startsWith(s + "$"));
  }

  private Class<?> define(String name) throws ClassNotFoundException {
    String file = name.replace('.', '/') + ".class";
    URL place = classPath.getResource(file);
    try (InputStream in = classPath.getResourceAsStream(file)) {
      if (in == null || place == null) {
        throw new ClassNotFoundException(name);
      }
      byte[] bytes = in.readAllBytes();
      if (isProduct(name, place)) {
        ClassModel model = classFile.parse(bytes);
        bytes = classFile.transformClass(model, transform(name));
      }
      return defineClass(name, bytes, 0, bytes.length);
    } catch (IOException e) {
      throw new ClassNotFoundException(name, e);
    }
  }

  private static MethodTypeDesc type(String descriptor) {
    return MethodTypeDesc.ofDescriptor(descriptor);
  }

  private static boolean isProduct(String name, URL place) {
    return !name.startsWith(DEVICE) && !place.getPath().contains("/test-classes/");
  }

  private static ClassTransform transform(String name) {
    CodeTransform calls = (code, element) -> around(code, element, name.startsWith(DRIVER));
    return switch (name) {
      case NATIVE -> bodies(NATIVE_CALL, ERRNO_CALL, calls);
      case CUDA -> bodies(CUDA_CALL, STATUS_CALL, calls);
      default -> ClassTransform.transformingMethodBodies(calls);
    };
  }

  /** Two transforms of the class, one behind the other, would leave the second one out. */
  private static ClassTransform bodies(String method, CodeTransform own, CodeTransform others) {
    return (code, element) -> {
      if (element instanceof MethodModel m) {
        boolean isOwn = m.methodName().equalsString(method);
        code.transformMethod(m, MethodTransform.transformingCode(isOwn ? own : others));
      } else {
        code.with(element);
      }
    };
  }

  /**
   * A method that calls foreign code.
   *
   * @param ask leaves an {@code int} that says what is to be returned instead of a call, or 0
   * @param fail returns that
   * @param result takes what is to be returned after the call, and leaves what is returned
   */
  private record ForeignCall(
      Consumer<CodeBuilder> ask, Consumer<CodeBuilder> fail, Consumer<CodeBuilder> result)
      implements CodeTransform {
    @Override
    public void atStart(CodeBuilder code) {
      Label goesOn = code.newLabel();
      ask.accept(code);
      code.dup().ifeq(goesOn);
      fail.accept(code);
      code.labelBinding(goesOn).pop();
    }

    @Override
    public void accept(CodeBuilder code, CodeElement element) {
      if (element instanceof ReturnInstruction) {
        result.accept(code);
      }
      code.with(element);
    }
  }

  private static void around(CodeBuilder code, CodeElement element, boolean isDriver) {
    Kind kind = element instanceof InvokeInstruction call ? kind(call, isDriver) : null;
    if (kind != null && kind != Kind.UNMAP) {
      at(code, kind);
    }
    code.with(element);
    if (kind == Kind.UNMAP) {
      at(code, kind);
    }
  }

  private static void at(CodeBuilder code, Kind kind) {
    code.getstatic(KIND, kind.name(), KIND).invokestatic(INJECTOR, "at", AT);
  }

  private static @Nullable Kind kind(InvokeInstruction call, boolean isDriver) {
    String owner = call.owner().asInternalName();
    String name = call.name().stringValue();
    if ((owner.equals(THREAD) && name.equals("start"))
        || (EXECUTORS.contains(owner) && name.equals("execute"))) {
      return Kind.THREAD;
    }
    if (ALLOCATORS.contains(owner) && (name.startsWith("allocate") || name.startsWith("of"))) {
      return Kind.ALLOCATION;
    }
    if (owner.equals(SEGMENT) && name.equals("copy") && !isDriver) {
      return Kind.COPY;
    }
    if (name.equals("map") && call.type().stringValue().endsWith(")L" + RANGE + ";")) {
      return Kind.MAP;
    }
    return owner.equals(RANGE) && name.equals("close") ? Kind.UNMAP : null;
  }
}

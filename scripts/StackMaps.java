import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.ClassTransform;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;

/**
 * Gives the classes of a jar that were compiled for Java 5 stack maps, as those for later versions
 * have. The virtual machine keeps no class without them in an archive of prepared classes.
 */
final class StackMaps {
  private static final int JAVA_5 = 49;

  private StackMaps() {}

  public static void main(String[] arguments) throws IOException {
    File jar = new File(arguments[0]);
    ByteArrayOutputStream rewritten = new ByteArrayOutputStream();
    try (JarFile from = new JarFile(jar);
        URLClassLoader classes = new URLClassLoader(new URL[] {jar.toURI().toURL()});
        JarOutputStream to = new JarOutputStream(rewritten)) {
      ClassFile files =
          ClassFile.of(
              ClassFile.StackMapsOption.GENERATE_STACK_MAPS,
              ClassFile.ClassHierarchyResolverOption.of(
                  ClassHierarchyResolver.ofResourceParsing(classes)
                      .orElse(ClassHierarchyResolver.defaultResolver())));
      for (JarEntry entry : (Iterable<JarEntry>) from.stream()::iterator) {
        byte[] bytes = from.getInputStream(entry).readAllBytes();
        if (entry.getName().endsWith(".class")) {
          ClassModel model = files.parse(bytes);
          if (model.majorVersion() <= JAVA_5) {
            bytes =
                files.transformClass(
                    model,
                    ClassTransform.transformingMethodBodies((code, element) -> code.with(element))
                        .andThen(
                            ClassTransform.endHandler(
                                c -> c.withVersion(ClassFile.JAVA_7_VERSION, 0))));
          }
        }
        JarEntry copy = new JarEntry(entry.getName());
        copy.setTime(entry.getTime());
        to.putNextEntry(copy);
        to.write(bytes);
      }
    }
    Files.write(jar.toPath(), rewritten.toByteArray());
  }
}

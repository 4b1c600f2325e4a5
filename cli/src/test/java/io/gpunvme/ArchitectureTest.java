package io.gpunvme;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The arrows between packages that modules cannot forbid, and what a library must not do. */
final class ArchitectureTest {
  private static final String ROOT = "io.gpunvme";

  private static JavaClasses product;

  @BeforeAll
  static void readTheProduct() {
    product =
        new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages(ROOT);
  }

  private static DescribedPredicate<JavaClass> ours() {
    return resideInAPackage(ROOT + "..");
  }

  /**
   * Each package with all of ours that it may use; nvme itself is only the exceptions and sizes.
   */
  @ParameterizedTest
  @CsvSource({
    "ffi,          ''",
    "nvme.spec,    ''",
    "nvme.memory,  'ffi nvme nvme.spec'",
    "nvme.pci,     'ffi nvme nvme.spec nvme.memory'",
    "nvme.pci.sysfs, 'ffi nvme nvme.memory nvme.pci'",
    "nvme.pci.vfio, 'ffi nvme nvme.memory nvme.pci'",
    "nvme.pci.kmod, 'ffi nvme nvme.memory nvme.pci'",
    "nvme.vfiouser, 'ffi nvme'",
    "nvme.pci.vfiouser, 'ffi nvme nvme.memory nvme.pci nvme.vfiouser'",
    "nvme.driver,  'ffi nvme nvme.spec nvme.memory nvme.pci'",
    "nvme.sim,     'ffi nvme nvme.spec nvme.memory nvme.pci nvme.vfiouser'",
    "nvme,         'nvme.spec'",
    "cuda,         'ffi cuda.library'",
    "cuda.library, 'cuda'",
    "cuda.cufile,  'ffi cuda cuda.library'",
    "core.sample,  'nvme'",
    "core.bar,     'ffi nvme nvme.memory nvme.pci'",
    "core.device,  'nvme nvme.driver nvme.pci nvme.pci.kmod nvme.pci.sysfs nvme.pci.vfio"
        + " nvme.pci.vfiouser nvme.sim core.bar'",
    "core.machine, 'ffi nvme nvme.pci'",
    "core.plan,    'nvme'",
    "core.fs.ext4, 'nvme core.fs'",
    "core.kind,    'nvme core.plan'",
    "core.doctor,  'ffi cuda cuda.cufile core.accel core.device core.gpu core.machine core.path"
        + " core.path.cufile core.transfer nvme nvme.driver nvme.pci nvme.sim nvme.spec'",
    "core.report,  ''",
    "core.fs,      'ffi nvme core.fs.ext4 core.fs.fat core.fs.partition core.path'",
    "core.fs.fat,  'nvme core.fs core.path'",
    "core.fs.partition, 'nvme core.fs core.path'",
    "core.weights.format, 'nvme core.fs core.path'",
    "core.accel,   'ffi cuda nvme nvme.memory nvme.pci core.bar'",
    "core.gpu,     'cuda nvme nvme.driver nvme.memory nvme.pci nvme.sim nvme.spec core.accel"
        + " core.device'",
    "core.transfer, 'nvme nvme.driver nvme.memory nvme.spec core.accel core.gpu'",
    "core.tensor,  'cuda nvme core.accel core.gpu'",
    "core.path,    'cuda nvme nvme.spec core.accel core.transfer'",
    "core.path.file, 'ffi nvme core.machine core.path'",
    "core.path.direct, 'cuda nvme nvme.driver core.accel core.gpu core.path core.plan"
        + " core.transfer'",
    "core.path.cufile, 'ffi cuda cuda.cufile nvme nvme.pci core.accel core.machine core.path"
        + " core.transfer'",
    "core.path.pinned, 'ffi cuda nvme core.accel core.path core.path.file core.transfer'",
    "core.path.mmap, 'ffi cuda nvme core.accel core.path core.path.file core.transfer'",
    "core.storage, 'cuda nvme nvme.driver core.accel core.device core.fs core.fs.partition"
        + " core.gpu core.kind core.path"
        + " core.path.cufile core.path.direct core.path.extents core.path.file core.path.mmap"
        + " core.path.pinned core.path.set core.plan core.transfer'",
    "core.path.set, 'nvme core.accel core.path core.plan core.transfer'",
    "core.path.extents, 'core.accel core.fs core.path core.path.set core.transfer'",
    "core.weights, 'nvme core.accel core.fs core.path core.path.set core.plan core.storage"
        + " core.tensor core.weights.format core.weights.raw'",
    "core.weights.raw, 'nvme core.fs core.weights.format'",
    "core.layer,   'cuda nvme core.accel core.path core.storage'",
    "core.bench,   'ffi cuda nvme nvme.driver nvme.memory nvme.pci nvme.pci.vfiouser nvme.sim"
        + " nvme.sim.serve nvme.spec core.accel"
        + " core.device core.fs core.gpu core.layer core.path core.path.file core.plan core.storage"
        + " core.tensor core.transfer core.weights core.weights.format'",
  })
  void packagesUseOnlyWhatLiesBelow(String name, String below) {
    boolean whole = name.equals("nvme.sim");
    String own = ROOT + "." + name + (whole ? ".." : "");
    String[] allowed =
        Stream.concat(
                Stream.of(own),
                Arrays.stream(below.split(" ")).filter(p -> !p.isEmpty()).map(p -> ROOT + "." + p))
            .toArray(String[]::new);
    classes()
        .that()
        .resideInAPackage(own)
        .should()
        .onlyDependOnClassesThat(
            DescribedPredicate.not(ours()).or(JavaClass.Predicates.resideInAnyPackage(allowed)))
        .check(product);
  }

  @Test
  void everyPackageOfTheLibrariesIsUnderARule() {
    assertThat(
            product.stream()
                .map(JavaClass::getPackageName)
                .filter(p -> p.startsWith(ROOT + ".nvme") || p.startsWith(ROOT + ".cuda"))
                .map(p -> p.substring(ROOT.length() + 1))
                .map(p -> p.replaceFirst("^nvme\\.sim\\..*", "nvme.sim"))
                .distinct())
        .containsExactlyInAnyOrder(
            "nvme",
            "nvme.spec",
            "nvme.memory",
            "nvme.pci",
            "nvme.pci.sysfs",
            "nvme.pci.vfio",
            "nvme.pci.kmod",
            "nvme.pci.vfiouser",
            "nvme.vfiouser",
            "nvme.driver",
            "nvme.sim",
            "cuda",
            "cuda.library",
            "cuda.cufile");
  }

  @Test
  void onlyTheCommandLineKnowsReports() {
    noClasses()
        .that()
        .resideOutsideOfPackages(ROOT + ".cli..", ROOT + ".core.report")
        .should()
        .dependOnClassesThat()
        .resideInAPackage(ROOT + ".core.report")
        .check(product);
  }

  @Test
  void librariesNeitherPrintNorExit() {
    noClasses()
        .that()
        .resideOutsideOfPackage(ROOT + ".cli..")
        .should()
        .accessField(System.class, "out")
        .orShould()
        .accessField(System.class, "err")
        .orShould()
        .callMethod(System.class, "exit", int.class)
        .orShould()
        .callMethod(Throwable.class, "printStackTrace")
        .check(product);
  }

  @Test
  void nobodyUsesUnsafe() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .haveFullyQualifiedName("sun.misc.Unsafe")
        .check(product);
  }
}

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in this JVM: starting one for each would take
 * most of the time. The first argument is a file with a command a line: main class, standard input
 * in base64, arguments, separated by tabs. The second gets a line for each: exit status, standard
 * output and standard error in base64. A class with & before it is a consumer of a group that goes
 * on beside the commands after it; they begin when it has partitions. One with ! before it does its
 * last things while its JVM ends, so it gets one of its own.
 */
public final class ToolRunner {
    private static final long TIMEOUT_MS = 60_000;
    private static final PrintStream OUT = System.out;
    private static final PrintStream ERR = System.err;

    /** Thrown where a tool would end the process. */
    private static final class Ended extends Error {
        Ended() {
            super("ToolRunner$Ended", null, false, false);
        }
    }

    public static void main(String[] args) throws Exception {
        List<String> results = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            results.add(run(line.split("\t", -1)));
            Files.write(Path.of(args[1]), results);
        }
        Runtime.getRuntime().halt(0); // a tool that timed out may have left threads
    }

    private static String run(String[] fields) throws Exception {
        if (fields[0].startsWith("!")) {
            fields[0] = fields[0].substring(1);
            return runApart(fields);
        }
        boolean goesOn = fields[0].startsWith("&");
        if (goesOn) {
            fields[0] = fields[0].substring(1);
        }
        byte[] input = Base64.getDecoder().decode(fields[1]);
        String[] arguments = Arrays.copyOfRange(fields, 2, fields.length);
        Method tool = Class.forName(fields[0]).getMethod("main", String[].class);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        AtomicInteger status = new AtomicInteger(-1);
        Exit.Procedure end = (code, message) -> {
            status.compareAndSet(-1, code);
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        List<Runnable> hooks = Collections.synchronizedList(new ArrayList<>());
        Exit.setShutdownHookAdder((name, work) -> hooks.add(work)); // the producer is closed by one
        System.setIn(new ByteArrayInputStream(input));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Thread thread = new Thread(() -> {
            call(tool, arguments, status);
            hooks.forEach(Runnable::run);
        });
        thread.setDaemon(true);
        thread.start();
        if (goesOn) {
            await(Arrays.asList(arguments), ToolRunner::hasBegun);
            System.setOut(OUT);
            System.setErr(ERR);
            return "0\t\t";
        }
        thread.join(TIMEOUT_MS);
        if (thread.isAlive()) {
            status.set(-2);
            thread.interrupt();
        } else if (fields[0].endsWith("ProducerPerformance") && List.of(arguments).contains("--transactional-id")) {
            await(Arrays.asList(arguments), ToolRunner::hasEnded); // markers come after the reply
        }
        System.out.flush();
        System.setOut(OUT);
        System.setErr(ERR);
        return status.get() + "\t" + encoded(out) + "\t" + encoded(err);
    }

    private static String runApart(String[] fields) throws Exception {
        List<String> command = new ArrayList<>(List.of(
            System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", System.getProperty("java.class.path"), fields[0]));
        command.addAll(Arrays.asList(fields).subList(2, fields.length));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        process.getOutputStream().close();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        process.getInputStream().transferTo(out);
        return process.waitFor() + "\t" + encoded(out) + "\t";
    }

    private interface Question {
        boolean holds(Admin admin, List<String> arguments) throws Exception;
    }

    private static void await(List<String> arguments, Question question) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", after("--bootstrap-server", arguments));
        long deadline = System.nanoTime() + TIMEOUT_MS * 1_000_000;
        try (Admin admin = Admin.create(settings)) {
            while (System.nanoTime() < deadline && !question.holds(admin, arguments)) {
                Thread.sleep(50);
            }
        }
    }

    /** That the group has a member with partitions, or the transaction its first one. */
    private static boolean hasBegun(Admin admin, List<String> arguments) throws Exception {
        try {
            if (arguments.contains("--group")) {
                String group = after("--group", arguments);
                return admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().stream()
                    .anyMatch(member -> !member.assignment().topicPartitions().isEmpty());
            }
            String id = after("--transactional-id", arguments);
            return !admin.describeTransactions(List.of(id)).all().get().get(id).topicPartitions().isEmpty();
        } catch (ExecutionException error) {
            return false; // there is no such group, or no such transaction, yet
        }
    }

    /** That the markers of the transaction are written. */
    private static boolean hasEnded(Admin admin, List<String> arguments) throws Exception {
        String id = after("--transactional-id", arguments);
        TransactionState state = admin.describeTransactions(List.of(id)).all().get().get(id).state();
        return state == TransactionState.COMPLETE_COMMIT || state == TransactionState.COMPLETE_ABORT;
    }

    private static String after(String option, List<String> arguments) {
        return arguments.get(arguments.indexOf(option) + 1);
    }

    private static void call(Method tool, String[] arguments, AtomicInteger status) {
        try {
            tool.invoke(null, (Object) arguments);
            status.compareAndSet(-1, 0);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                status.compareAndSet(-1, 1);
                error.getCause().printStackTrace();
            }
        } catch (IllegalAccessException error) {
            throw new AssertionError(error);
        }
    }

    private static String encoded(ByteArrayOutputStream printed) {
        return Base64.getEncoder().encodeToString(printed.toByteArray());
    }
}

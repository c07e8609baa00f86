import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jinterop.dcom.common.JIException;
import org.jinterop.dcom.common.JISystem;
import org.jinterop.dcom.core.*;
import org.jinterop.dcom.impls.JIObjectFactory;
import org.jinterop.dcom.impls.automation.IJIDispatch;
import org.jinterop.dcom.impls.automation.JIAutomationException;

/**
 * Uses the COM objects of a queue manager by j-interop: java Com HOST DOMAIN USER SCENARIO [ARGUMENT…]
 *
 * <p>The password is read from standard input. Prints one "name=value" to a line.
 */
public class Com {
    static final String QUEUE_INFO = "d7d6e07c-dccd-11d0-aa4b-0060970debae";
    static final String MESSAGE = "d7d6e075-dccd-11d0-aa4b-0060970debae";
    static final String DISPENSER = "d7d6e084-dccd-11d0-aa4b-0060970debae";
    static final String EVENT = "d7d6e07a-dccd-11d0-aa4b-0060970debae";
    static final String EVENTS = "d7d6e078-dccd-11d0-aa4b-0060970debae";
    static final String IMSMQ_QUEUE_INFO_3 = "eba96b1d-2168-11d3-898c-00e02c074f6b";
    static final String IMSMQ_MESSAGE_3 = "eba96b1a-2168-11d3-898c-00e02c074f6b";
    static final String IMSMQ_QUEUE_3 = "eba96b1b-2168-11d3-898c-00e02c074f6b";
    static final int RECEIVE_ACCESS = 1;
    static final int SEND_ACCESS = 2;
    static final int BSTR = JIFlags.FLAG_REPRESENTATION_STRING_BSTR;
    static final JIVariant MISSING = JIVariant.OPTIONAL_PARAM();

    final String host;
    final String domain;
    final String user;
    final String password;
    final List<JISession> sessions = new ArrayList<>();

    Com(String host, String domain, String user, String password) {
        this.host = host;
        this.domain = domain;
        this.user = user;
        this.password = password;
    }

    public static void main(String[] arguments) throws Exception {
        JISystem.setInBuiltLogHandler(false);
        JISystem.setAutoRegisteration(false);
        String password = new String(System.in.readAllBytes()).strip();
        var rest = List.of(arguments).subList(4, arguments.length);
        Com com = new Com(arguments[0], arguments[1], arguments[2], password);
        try {
            switch (arguments[3]) {
                case "late" -> com.late(rest.get(0));
                case "early" -> com.early(rest.get(0));
                case "properties" -> com.properties(rest);
                case "transactions" -> com.transactions(rest.get(0));
                case "event" -> com.event(rest.get(0));
                case "types" -> com.types();
                case "fault" -> com.fault();
                default -> throw new IllegalArgumentException(arguments[3]);
            }
        } finally {
            for (JISession session : com.sessions) JISession.destroySession(session);
        }
        System.exit(0);
    }

    static void print(String name, Object value) {
        System.out.println(name + "=" + value);
    }

    /** j-interop makes one object for each session. */
    JISession session() {
        JISession session = JISession.createSession(domain, user, password);
        session.useSessionSecurity(true);
        session.useNTLMv2(true);
        session.setGlobalSocketTimeout(60_000);
        sessions.add(session);
        return session;
    }

    IJIComObject unknown(String clsid) throws Exception {
        JISession session = session();
        return new JIComServer(JIClsid.valueOf(clsid), host, session).createInstance();
    }

    IJIDispatch object(String clsid) throws Exception {
        return dispatch(unknown(clsid));
    }

    static IJIDispatch dispatch(IJIComObject any) throws JIException {
        return (IJIDispatch) JIObjectFactory.narrowObject(any.queryInterface(IJIDispatch.IID));
    }

    static IJIDispatch object(JIVariant value) throws JIException {
        return dispatch(JIObjectFactory.narrowObject(value.getObjectAsComObject()));
    }

    static JIVariant call(IJIDispatch on, String method, Object... arguments) throws JIException {
        return on.callMethodA(method, arguments)[0];
    }

    IJIDispatch info(String path) throws Exception {
        IJIDispatch info = object(QUEUE_INFO);
        info.put("PathName", new JIVariant(path));
        return info;
    }

    IJIDispatch message(String label, String body) throws Exception {
        IJIDispatch message = object(MESSAGE);
        message.put("Label", new JIVariant(label));
        message.put("Body", new JIVariant(body));
        message.put("Delivery", new JIVariant(1));
        return message;
    }

    static IJIDispatch open(IJIDispatch info, int access) throws JIException {
        return object(call(info, "Open", access, 0));
    }

    static String text(JIVariant value) throws JIException {
        Object held = value.getObject();
        if (held instanceof JIString string) return string.getString();
        if (held instanceof Date date) return String.valueOf(date.getTime());
        if (held instanceof JIArray array) return "array of " + array.getUpperBounds()[0];
        if (held instanceof IJIUnsigned number) return String.valueOf(number.getValue());
        return String.valueOf(held);
    }

    /** Creates, sends, peeks and receives by IDispatch. */
    void late(String path) throws Exception {
        IJIDispatch info = info(path);
        info.put("Label", new JIVariant("made by Java"));
        call(info, "Create", MISSING, MISSING);
        IJIDispatch to = open(info, SEND_ACCESS);
        IJIDispatch sent = message("late", "by its name");
        call(sent, "Send", to, MISSING);
        print("sent", text(sent.get("Id")));
        call(to, "Close");
        IJIDispatch from = open(info, RECEIVE_ACCESS);
        print("peeked", text(object(call(from, "Peek", MISSING, MISSING, 1000, MISSING)).get("Label")));
        IJIDispatch got = object(call(from, "Receive", MISSING, MISSING, MISSING, 1000, MISSING));
        print("label", text(got.get("Label")));
        print("body", text(got.get("Body")));
        print("id", text(got.get("Id")));
        print("lookup", text(got.get("LookupId")));
        print("open", text(from.get("IsOpen")));
        call(from, "Close");
        print("closed", text(from.get("IsOpen")));
    }

    static Object[] vtable(IJIComObject on, int opnum, JICallBuilder call) throws JIException {
        call.setOpnum(opnum - 7);
        return on.call(call);
    }

    static void put(IJIComObject on, int opnum, String value) throws JIException {
        JICallBuilder call = new JICallBuilder();
        call.addInParamAsString(value, BSTR);
        vtable(on, opnum, call);
    }

    static String get(IJIComObject on, int opnum) throws JIException {
        JICallBuilder call = new JICallBuilder();
        call.addOutParamAsObject(new JIString(BSTR), JIFlags.FLAG_NULL);
        return ((JIString) vtable(on, opnum, call)[0]).getString();
    }

    static void variants(JICallBuilder call, JIVariant... values) {
        for (JIVariant value : values) call.addInParamAsVariant(value, JIFlags.FLAG_NULL);
    }

    static IJIComObject opened(IJIComObject info, int access) throws JIException {
        JICallBuilder call = new JICallBuilder();
        call.addInParamAsInt(access, JIFlags.FLAG_NULL);
        call.addInParamAsInt(0, JIFlags.FLAG_NULL);
        call.addOutParamAsType(IJIComObject.class, JIFlags.FLAG_NULL);
        return JIObjectFactory.narrowObject((IJIComObject) vtable(info, 34, call)[0]);
    }

    /** The same by opnums. */
    void early(String path) throws Exception {
        IJIComObject info = unknown(QUEUE_INFO).queryInterface(IMSMQ_QUEUE_INFO_3);
        put(info, 13, path);
        put(info, 11, "made by Java");
        JICallBuilder create = new JICallBuilder();
        variants(create, MISSING, MISSING);
        vtable(info, 32, create);
        print("format", get(info, 14));
        IJIComObject to = opened(info, SEND_ACCESS);
        IJIComObject sent = unknown(MESSAGE).queryInterface(IMSMQ_MESSAGE_3);
        put(sent, 37, "early");
        JICallBuilder body = new JICallBuilder();
        variants(body, new JIVariant("by its number"));
        vtable(sent, 28, body);
        JICallBuilder send = new JICallBuilder();
        send.addInParamAsComObject(to, JIFlags.FLAG_NULL);
        variants(send, MISSING);
        vtable(sent, 54, send);
        IJIComObject from = opened(info, RECEIVE_ACCESS);
        JICallBuilder receive = new JICallBuilder();
        variants(receive, MISSING, MISSING, MISSING, new JIVariant(1000), MISSING);
        receive.addOutParamAsType(IJIComObject.class, JIFlags.FLAG_NULL);
        IJIComObject got = JIObjectFactory.narrowObject((IJIComObject) vtable(from, 20, receive)[0]);
        print("label", get(got, 36));
        JICallBuilder read = new JICallBuilder();
        read.addOutParamAsType(JIVariant.class, JIFlags.FLAG_NULL);
        print("body", text((JIVariant) vtable(got, 27, read)[0]));
    }

    /** Each property of the queue and of the first message in it. */
    void properties(List<String> words) throws Exception {
        IJIDispatch info = info(words.get(0));
        IJIDispatch from = open(info, RECEIVE_ACCESS);
        IJIDispatch first = object(call(from, "Peek", MISSING, MISSING, 1000, MISSING));
        var objects = java.util.Map.of("info", info, "queue", from, "message", first);
        for (String word : words.subList(1, words.size())) {
            String[] parts = word.split("\\.");
            try {
                print(word, text(objects.get(parts[0]).get(parts[1])));
            } catch (JIException error) {
                print(word, "error " + code(error));
            }
        }
    }

    /** The HRESULT of a method, also where it was called by its name. */
    static String code(JIException error) {
        int code =
                error instanceof JIAutomationException exception
                        ? exception.getExcepInfo().getErrorCode()
                        : error.getErrorCode();
        return String.format("%08x", code);
    }

    /** Sends in a transaction that is aborted and in one that is committed. */
    void transactions(String path) throws Exception {
        IJIDispatch info = info(path);
        call(info, "Create", new JIVariant(true), MISSING);
        IJIDispatch to = open(info, SEND_ACCESS);
        IJIDispatch dispenser = object(DISPENSER);
        for (String end : List.of("Abort", "Commit")) {
            IJIDispatch transaction = object(call(dispenser, "BeginTransaction"));
            call(message(end, "in a transaction"), "Send", to, new JIVariant(transaction));
            if (end.equals("Abort")) call(transaction, end, MISSING, MISSING);
            else call(transaction, end, MISSING, MISSING, MISSING);
        }
        IJIDispatch from = open(info, RECEIVE_ACCESS);
        IJIDispatch transaction = object(call(dispenser, "BeginTransaction"));
        JIVariant in = new JIVariant(transaction);
        print("received", text(object(call(from, "Receive", in, MISSING, MISSING, 1000, MISSING)).get("Label")));
        call(transaction, "Abort", MISSING, MISSING);
        print("again", text(object(call(from, "Receive", MISSING, MISSING, MISSING, 1000, MISSING)).get("Label")));
    }

    /** What the queue manager calls. */
    public static class Listener {
        static final LinkedBlockingQueue<String> HEARD = new LinkedBlockingQueue<>();

        public void Arrived(IJIComObject queue, int cursor) {
            HEARD.add("Arrived " + cursor);
        }

        public void ArrivedError(IJIComObject queue, int error, int cursor) {
            HEARD.add(String.format("ArrivedError %08x %d", error, cursor));
        }
    }

    /** Waits for a message by an event. */
    void event(String path) throws Exception {
        var definition = new JILocalInterfaceDefinition(EVENTS);
        var arrived = new JILocalParamsDescriptor();
        arrived.addInParamAsType(IJIComObject.class, JIFlags.FLAG_NULL);
        arrived.addInParamAsType(Integer.class, JIFlags.FLAG_NULL);
        definition.addMethodDescriptor(new JILocalMethodDescriptor("Arrived", 0, arrived));
        var failed = new JILocalParamsDescriptor();
        failed.addInParamAsType(IJIComObject.class, JIFlags.FLAG_NULL);
        failed.addInParamAsType(Integer.class, JIFlags.FLAG_NULL);
        failed.addInParamAsType(Integer.class, JIFlags.FLAG_NULL);
        definition.addMethodDescriptor(new JILocalMethodDescriptor("ArrivedError", 1, failed));
        var listener = new JILocalCoClass(definition, Listener.class);
        var supported = new ArrayList<String>();
        supported.add(EVENTS);
        listener.setSupportedEventInterfaces(supported);
        IJIDispatch event = object(EVENT);
        String advised =
                JIObjectFactory.attachEventHandler(
                        event, EVENTS, JIObjectFactory.buildObject(event.getAssociatedSession(), listener));
        IJIDispatch from = open(info(path), RECEIVE_ACCESS);
        call(from, "EnableNotification", event, MISSING, new JIVariant(30_000));
        print("waiting", true);
        print("heard", Listener.HEARD.poll(60, TimeUnit.SECONDS));
        JIObjectFactory.detachEventHandler(event, advised);
    }

    /** What type information says of an object. */
    void types() throws Exception {
        IJIDispatch info = object(QUEUE_INFO);
        print("count", info.getTypeInfoCount());
        var type = info.getTypeInfo(0);
        print("functions", type.getTypeAttr().cFuncs);
        print("name", ((JIString) type.getDocumentation(-1)[0]).getString());
        print("dispid", info.getIDsOfNames("pathNAME") == info.getIDsOfNames("PathName"));
    }

    /** A mistake comes back as what it is. */
    void fault() throws Exception {
        try {
            open(info(".\\private$\\nobody-has-made-it"), RECEIVE_ACCESS);
            print("error", "none");
        } catch (JIException error) {
            print("error", code(error));
        }
    }
}

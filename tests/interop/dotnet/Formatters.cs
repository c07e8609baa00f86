// Writes and reads bodies of messages by the formatters of System.Messaging, one order a line:
//   write FORMATTER VALUE        ->  BODY-TYPE OCTETS
//   read FORMATTER TYPE OCTETS   ->  VALUE
// and "error MESSAGE" for what a formatter refuses. Octets are hexadecimal, and so are texts, in
// UTF-16; tests/support/codec/dotnet_values.py says how values are written.
// FORMATTER is xml, binary, activex, or windows: what XmlMessageFormatter of .NET Framework does
// with the same reader of XML, which takes line ends and control characters as they are.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Messaging;
using System.Reflection;
using System.Text;
using System.Xml;
using System.Xml.Serialization;

public enum Color { Red, Green, Blue = 7 }

[Serializable]
public struct Point { public int X, Y; }

[Serializable]
public class Order
{
    public int Number;
    public string Buyer;
    public decimal Price;
    public DateTime Placed;
    public int? Discount;
    public Color Tint;
    public Point Place;
    public string[] Lines;
    public List<int> Counts;
    public Order Before;
}

[Serializable]
public class Node
{
    public string Name;
    public Node Parent;
    public List<Node> Children;
}

static class Formatters
{
    static readonly Dictionary<string, Type> Types = new Dictionary<string, Type> {
        { "bool", typeof(bool) }, { "byte", typeof(byte) }, { "sbyte", typeof(sbyte) },
        { "short", typeof(short) }, { "ushort", typeof(ushort) }, { "int", typeof(int) },
        { "uint", typeof(uint) }, { "long", typeof(long) }, { "ulong", typeof(ulong) },
        { "float", typeof(float) }, { "double", typeof(double) }, { "decimal", typeof(decimal) },
        { "char", typeof(char) }, { "string", typeof(string) }, { "DateTime", typeof(DateTime) },
        { "DateTimeOffset", typeof(DateTimeOffset) }, { "TimeSpan", typeof(TimeSpan) },
        { "Guid", typeof(Guid) }, { "object", typeof(object) }, { "Color", typeof(Color) },
        { "Point", typeof(Point) }, { "Order", typeof(Order) }, { "Node", typeof(Node) },
        { "ArrayList", typeof(ArrayList) },
        { "Dictionary", typeof(Dictionary<string, int>) },
    };

    static void Main()
    {
        CultureInfo.DefaultThreadCurrentCulture = CultureInfo.InvariantCulture;
        Console.SetOut(TextWriter.Null); // Mono's formatter tells there what it could not read
        var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false));
        string line;
        while ((line = Console.In.ReadLine()) != null)
        {
            try { output.WriteLine(Answer(line.Split(' '))); }
            catch (Exception error)
            {
                while (error.InnerException != null) error = error.InnerException;
                output.WriteLine("error " + error.Message.Replace('\n', ' ').Replace('\r', ' '));
            }
        }
        output.Flush();
    }

    static string Answer(string[] words)
    {
        if (words[0] == "write")
        {
            var message = new Message();
            Formatter(words[1], null).Write(message, new Reader(words, 2).Value());
            var octets = new MemoryStream();
            message.BodyStream.Position = 0;
            message.BodyStream.CopyTo(octets);
            return message.BodyType + " " + Hex(octets.ToArray());
        }
        Type type = TypeOf(words[2]);
        var body = new MemoryStream(Octets(words[3]));
        if (words[1] == "windows")
        {
            var reader = new XmlTextReader(body) { WhitespaceHandling = WhitespaceHandling.Significant };
            return Told(new XmlSerializer(type).Deserialize(reader));
        }
        return Told(Formatter(words[1], type).Read(new Message { BodyStream = body }));
    }

    static IMessageFormatter Formatter(string name, Type type)
    {
        if (name == "binary") return new BinaryMessageFormatter();
        if (name == "activex") return new ActiveXMessageFormatter();
        return type == null ? new XmlMessageFormatter() : new XmlMessageFormatter(new[] { type });
    }

    // Types and octets

    static Type TypeOf(string name)
    {
        if (name.EndsWith("[]")) return TypeOf(name.Substring(0, name.Length - 2)).MakeArrayType();
        if (name.EndsWith("?"))
            return typeof(Nullable<>).MakeGenericType(TypeOf(name.Substring(0, name.Length - 1)));
        if (name.StartsWith("List<"))
            return typeof(List<>).MakeGenericType(TypeOf(name.Substring(5, name.Length - 6)));
        return Types[name];
    }

    static string NameOf(Type type)
    {
        if (type.IsArray) return NameOf(type.GetElementType()) + "[]";
        if (type.IsGenericType && type.GetGenericTypeDefinition() == typeof(List<>))
            return "List<" + NameOf(type.GetGenericArguments()[0]) + ">";
        if (type.IsGenericType && type.GetGenericTypeDefinition() == typeof(Nullable<>))
            return NameOf(type.GetGenericArguments()[0]) + "?";
        return Types.First(each => each.Value == type).Key;
    }

    static string Hex(byte[] octets)
    {
        return BitConverter.ToString(octets).Replace("-", "");
    }

    static byte[] Octets(string hex)
    {
        var made = new byte[hex.Length / 2];
        for (int at = 0; at < made.Length; at++) made[at] = Convert.ToByte(hex.Substring(2 * at, 2), 16);
        return made;
    }

    // Values

    class Reader
    {
        readonly string[] words;
        int at;

        public Reader(string[] words, int at) { this.words = words; this.at = at; }

        public object Value()
        {
            string word = words[at++];
            if (word == "null") return null;
            if (word[0] == '[') return List(TypeOf(word.Substring(1)));
            if (word[0] == '{') return Object(TypeOf(word.Substring(1)));
            int colon = word.IndexOf(':');
            return Scalar(word.Substring(0, colon), word.Substring(colon + 1));
        }

        object List(Type type)
        {
            var values = new List<object>();
            while (words[at] != "]") values.Add(Value());
            at++;
            if (!type.IsArray)
            {
                var list = (IList)Activator.CreateInstance(type);
                foreach (object each in values) list.Add(each);
                return list;
            }
            Array array = Array.CreateInstance(type.GetElementType(), values.Count);
            for (int index = 0; index < values.Count; index++) array.SetValue(values[index], index);
            return array;
        }

        object Object(Type type)
        {
            object made = Activator.CreateInstance(type);
            while (words[at] != "}")
            {
                string name = words[at++];
                object value = Value();
                if (made is IDictionary) ((IDictionary)made)[name] = value;
                else type.GetField(name).SetValue(made, value);
            }
            at++;
            if (made is Node) Adopt((Node)made);
            return made;
        }

        static void Adopt(Node parent)
        {
            foreach (Node child in parent.Children ?? new List<Node>()) child.Parent = parent;
        }

        static object Scalar(string type, string text)
        {
            byte[] octets;
            switch (type)
            {
                case "string": return Encoding.BigEndianUnicode.GetString(Octets(text));
                case "units": return new string(Units(text));
                case "char": return (char)Convert.ToInt32(text, 16);
                case "byte[]": return Octets(text);
                case "float": octets = Octets(text); return BitConverter.ToSingle(octets, 0);
                case "double": octets = Octets(text); return BitConverter.ToDouble(octets, 0);
                case "decimal": return decimal.Parse(text, CultureInfo.InvariantCulture);
                case "Guid": return new Guid(text);
                case "TimeSpan": return new TimeSpan(long.Parse(text));
                case "DateTime": return Date(text);
                case "DateTimeOffset":
                    string[] parts = text.Split(',');
                    return new DateTimeOffset(
                        long.Parse(parts[0]), TimeSpan.FromMinutes(int.Parse(parts[1])));
                case "Color": return Enum.Parse(typeof(Color), text);
                case "object": return new object();
                case "grid": return new int[,] { { 1, 2 }, { 3, 4 } };
                case "circle": object[] circle = { null }; circle[0] = circle; return circle;
            }
            return Convert.ChangeType(text, TypeOf(type), CultureInfo.InvariantCulture);
        }

        static char[] Units(string hex)
        {
            var units = new char[hex.Length / 4];
            for (int at = 0; at < units.Length; at++)
                units[at] = (char)Convert.ToInt32(hex.Substring(4 * at, 4), 16);
            return units;
        }

        static DateTime Date(string text)
        {
            string[] parts = text.Split(',');
            var kind = (DateTimeKind)Enum.Parse(typeof(DateTimeKind), parts[1]);
            return new DateTime(long.Parse(parts[0]), kind);
        }
    }

    static string Told(object value)
    {
        if (value == null) return "null";
        string name = NameOf(value.GetType());
        if (value.GetType() == typeof(byte[])) return name + ":" + Hex((byte[])value);
        if (value is IList)
        {
            var words = new List<string> { "[" + name };
            foreach (object each in (IList)value) words.Add(Told(each));
            return string.Join(" ", words) + " ]";
        }
        if (value is Order || value is Point)
        {
            var words = new List<string> { "{" + name };
            foreach (FieldInfo field in value.GetType().GetFields())
            {
                words.Add(field.Name);
                words.Add(Told(field.GetValue(value)));
            }
            return string.Join(" ", words) + " }";
        }
        return name + ":" + Text(value);
    }

    static string Text(object value)
    {
        if (value is string) return Hex(Encoding.BigEndianUnicode.GetBytes((string)value));
        if (value is char) return ((int)(char)value).ToString("X4");
        if (value is float) return Hex(BitConverter.GetBytes((float)value));
        if (value is double) return Hex(BitConverter.GetBytes((double)value));
        if (value is TimeSpan) return ((TimeSpan)value).Ticks.ToString();
        if (value is DateTime)
            return ((DateTime)value).Ticks + "," + ((DateTime)value).Kind;
        return Convert.ToString(value, CultureInfo.InvariantCulture);
    }
}

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("teams", "0011_widening_and_keys"),
    ]

    operations = [
        migrations.RemoveField(model_name="team", name="commands"),
    ]
